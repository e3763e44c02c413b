"""What can go wrong between a service and its tables.

StoreError
├── PostgresUnavailable    nothing answers at the address, or it cannot just now (no room, read-only, a deadlock);
│                          a Retry: the same may work a little later
├── PostgresRefused        the server answers, and refuses the credentials or does not know the database
├── PoolerUnannounced      a pooler stands before the server, and the address does not say so
├── PostgresTooOld         the server is older than we support
├── VectorMissing          the server has no pgvector
├── SchemaMissing          the database was never migrated
├── TenantInvalid          a tenant's name is no lower-case slug
├── QueriesInvalid         a queries.sql cannot be read; names the line
├── UnknownQuery           no query has that name
└── MigrationError
    ├── MigrationInvalid       a file's name or text is not a migration
    ├── MigrationChanged       an applied file was edited afterwards
    ├── MigrationUnknown       the database has a migration that this version does not know
    ├── MigrationOutOfOrder    a new file's number is below one already applied
    ├── MigrationFailed        Postgres refused a statement; names the file and line
    ├── MigrationBlocked       a lock was not granted for minutes; names who is in a transaction
    └── RoleTooPowerful        the service's role could bypass row-level security
"""

from wayline.contracts.errors import Retry
from wayline.store.transient_errors import COMES_AGAIN_S, REASONS


class StoreError(Exception):
    """The root of everything that can go wrong with a store."""


class PostgresUnavailable(StoreError, Retry):
    """Nothing answers at the address, or it cannot just now; the same may work a little later."""

    def __init__(
        self, *, where: str, cause: str, waited_s: float = 0.0, sqlstate: str = "", statement_too_slow: bool = False
    ) -> None:
        self.sqlstate = sqlstate
        self.statement_too_slow = statement_too_slow
        """Whether a statement that ran took longer than any may: the same one may do so each time."""
        answered = bool(sqlstate) and not sqlstate.startswith("08")
        self.why = REASONS.get(sqlstate, "it cannot just now" if answered else "it does not answer")
        """A few words for people who do not run this Postgres."""
        waited = f" within {waited_s:g} s" if waited_s else ""
        super().__init__(
            f"Postgres at {where} cannot do it just now: {self.why} ({sqlstate}: {cause}). "
            "What waits for it goes on by itself once it can."
            if answered
            else f"Postgres did not answer at {where}{waited} ({cause}). Start it (`wayline up` brings its own), "
            "or set WAYLINE_POSTGRES_DSN to where it is.",
            after_s=COMES_AGAIN_S.get(sqlstate, 1.0),
        )


class PostgresRefused(StoreError):
    """The server answers, and refuses the credentials or does not know the database."""

    def __init__(self, *, where: str, cause: str) -> None:
        super().__init__(
            f"Postgres at {where} refused the connection: {cause}. Check the address, then `wayline migrate`."
        )


class PoolerUnannounced(StoreError):
    """A pooler stands before the server, and the address does not say so, or may not lead to one."""

    def __init__(self, *, where: str, admin: bool = False) -> None:
        todo = (
            "migrations hold locks of a session: set WAYLINE_POSTGRES_ADMIN_DSN to the server's own address"
            if admin
            else "put pool_mode=transaction into the address, or pool sessions and let search_path through"
        )
        super().__init__(f"A pooler of transactions answers at {where}: {todo}.")


class PostgresTooOld(StoreError):
    """The server is older than we support."""

    def __init__(self, *, found: str, wanted: int) -> None:
        super().__init__(f"Postgres is version {found}; Wayline needs {wanted} or newer.")


class VectorMissing(StoreError):
    """The server has no pgvector."""

    def __init__(self) -> None:
        super().__init__(
            "Postgres has no extension `vector`: install pgvector on the server "
            "(the image pgvector/pgvector has it), then `wayline migrate` again."
        )


class SchemaMissing(StoreError):
    """The database was never migrated."""

    def __init__(self, *, schema: str) -> None:
        super().__init__(f"the database has no schema {schema!r} that this role may use: run `wayline migrate` first.")


class TenantInvalid(StoreError, ValueError):
    """A tenant's name is no lower-case slug."""

    def __init__(self, *, tenant: str) -> None:
        super().__init__(f"{tenant!r} is no tenant: lower-case letters, digits, '-' and '_', at most 63, are.")


class QueriesInvalid(StoreError):
    """A queries.sql cannot be read; names the line."""

    def __init__(self, *, source: str, line: int, problem: str) -> None:
        super().__init__(f"{source}:{line}: {problem}")


class UnknownQuery(StoreError, AttributeError):
    """No query has that name."""

    def __init__(self, *, name: str, source: str, known: list[str]) -> None:
        super().__init__(f"{source} has no query {name!r}; it has: {', '.join(known) or 'none'}")


class MigrationError(StoreError):
    """A schema could not be brought up to date."""


class MigrationInvalid(MigrationError):
    """A file's name or text is not a migration."""

    def __init__(self, *, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")


class MigrationChanged(MigrationError):
    """An applied file was edited afterwards."""

    def __init__(self, *, file: str, schema: str) -> None:
        super().__init__(
            f"{file} was applied to schema {schema!r} and has been edited since. "
            "Restore it, and put the change into a new migration."
        )


class MigrationUnknown(MigrationError):
    """The database has a migration that this version does not know."""

    def __init__(self, *, file: str, schema: str) -> None:
        super().__init__(
            f"schema {schema!r} already has {file}, which this version of Wayline does not know: upgrade it."
        )


class MigrationOutOfOrder(MigrationError):
    """A new file's number is below one already applied."""

    def __init__(self, *, file: str, latest: str) -> None:
        super().__init__(f"{file} is new, but {latest} is applied already: give it the next number.")


class MigrationFailed(MigrationError):
    """Postgres refused a statement; names the file and line."""

    def __init__(self, *, file: str, line: int | None, cause: str, whole: bool = True) -> None:
        left = "Nothing of this file was applied." if whole else "`wayline migrate` goes on with this statement."
        super().__init__(f"{file}{f':{line}' if line else ''}: {cause}. {left}")


class MigrationBlocked(MigrationError):
    """A lock was not granted for minutes; names who is in a transaction."""

    def __init__(self, *, what: str, waited_s: float, holders: list[str]) -> None:
        super().__init__(
            f"{what} was locked by others for {waited_s:g} s: {'; '.join(holders) or 'by nobody who is there now'}. "
            "Services went on meanwhile. End that transaction, then `wayline migrate` again."
        )


class RoleTooPowerful(MigrationError):
    """The service's role could bypass row-level security."""

    def __init__(self, *, role: str) -> None:
        super().__init__(
            f"role {role!r} is a superuser or has BYPASSRLS, so no policy would bind it. "
            f"ALTER ROLE {role} NOSUPERUSER NOBYPASSRLS, or drop it, then `wayline migrate` again."
        )
