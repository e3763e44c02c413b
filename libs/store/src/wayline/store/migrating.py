"""Bring one service's schema up to date: its role, its grants, its tables, its functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

from wayline.store.concurrent_indexes import change_indexes
from wayline.store.connecting import connect_admin
from wayline.store.errors import (
    MigrationChanged,
    MigrationFailed,
    MigrationOutOfOrder,
    MigrationUnknown,
    RoleTooPowerful,
    VectorMissing,
)
from wayline.store.lock_retries import BLOCKED, LOCK_PATIENCE_S, take_turn, wait_briefly, with_retries
from wayline.store.migration_files import SqlFile, is_function_file, read_functions, read_migrations
from wayline.store.table_catalogue import PROBE_TABLE

# One lock a database: two services' migrations create the same extension.
LOCK_KEY = 0x7761796C696E65
APPLIED_TABLE = "applied_migrations"
VECTOR = "vector"
DEAD_CLIENTS = {
    "tcp_keepalives_idle": "10s",
    "tcp_keepalives_interval": "5s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "25s",
}
"""How soon the server gives up a client whose machine is gone or cut off, and the locks of its transaction with it; by
default after two hours. Settings of the role: a pooler between passes on none of a connection."""
_HAS_COLUMN = "SELECT count(*) FROM pg_attribute WHERE attrelid = $1::text::regclass AND attname = 'older_may_run'"


@dataclass(frozen=True)
class AppliedFile:
    """A file as the schema remembers it."""

    file: str
    checksum: str
    older_may_run: bool
    """Whether a version that does not know the file may go on with its tables."""


async def migrate(
    admin_dsn: str,
    *,
    schema: str,
    role: str,
    password: str,
    directory: Path,
    vector: bool = False,
    patience_s: float = LOCK_PATIENCE_S,
    login: str | None = None,
) -> list[str]:
    """Create the schema and the service's role, apply the files that are new, and return their names.

    Function files are beside the directory of the migrations. They are applied again when their text has changed.
    Services work meanwhile: a lock that is not granted at once is asked for again, for `patience_s`.
    `login`: another role by which the service logs in, with all rights of the first one.
    """
    migrations, functions = read_migrations(directory), read_functions(directory)
    conn = await connect_admin(admin_dsn)
    try:
        await take_turn(conn, LOCK_KEY)
        await wait_briefly(conn)
        if vector:
            await _create_vector(conn)
        await create_login(conn, role=role, login=login or role, password=password)
        create = partial(_create_schema, conn, schema=schema, role=role)
        await with_retries(conn, create, what=f"schema {schema}", patience_s=patience_s)
        applied = await _applied(conn, schema)
        pending = _pending(migrations, applied, schema=schema)
        for migration in pending:
            if migration.indexes:
                await change_indexes(conn, list(migration.indexes), schema=schema, file=migration.file)
                await _remember(conn, migration, schema=schema)
            else:
                await _apply_when_free(conn, [migration], schema=schema, role=role, patience_s=patience_s)
        # All of them after a migration: it may have dropped what a fresh database has.
        changed = [file for file in functions if pending or not _is_applied(file, applied)]
        again = [file for file in functions if file.each_time and file not in changed]
        # In one transaction: functions call each other.
        await _apply_when_free(conn, changed + again, schema=schema, role=role, patience_s=patience_s)
        # A file that comes back with a version of before is then applied again.
        gone = {version for version in applied if is_function_file(version)} - {file.version for file in functions}
        await _forget(conn, sorted(gone), schema=schema)
        return [file.file for file in (*pending, *changed)]
    finally:
        # Ends the session, and the lock with it.
        await conn.close()


def _pending(migrations: list[SqlFile], applied: Mapping[str, AppliedFile], *, schema: str) -> list[SqlFile]:
    """Return the migrations still to apply, after checking that history is as it was."""
    known = {migration.version: migration for migration in migrations}
    history = {version: row for version, row in applied.items() if not is_function_file(version)}
    for version, row in history.items():
        if version not in known:
            if row.older_may_run:
                continue
            raise MigrationUnknown(file=row.file, schema=schema)
        if known[version].checksum != row.checksum:
            raise MigrationChanged(file=known[version].file, schema=schema)
    latest = max(history, default="")
    pending = [migration for migration in migrations if migration.version not in history]
    if pending and pending[0].version < latest:
        raise MigrationOutOfOrder(file=pending[0].file, latest=history[latest].file)
    return pending


async def _applied(conn: Any, schema: str) -> dict[str, AppliedFile]:
    rows = await conn.fetch(
        f"SELECT version, file, checksum, older_may_run FROM {_quote(schema)}.{APPLIED_TABLE} ORDER BY version"
    )
    return {row["version"]: AppliedFile(row["file"], row["checksum"], row["older_may_run"]) for row in rows}


def _is_applied(file: SqlFile, applied: Mapping[str, AppliedFile]) -> bool:
    row = applied.get(file.version)
    return row is not None and (row.file, row.checksum) == (file.file, file.checksum)


async def _apply_when_free(conn: Any, files: list[SqlFile], *, schema: str, role: str, patience_s: float) -> None:
    """Run the files in one transaction, again while a lock that it needs is another transaction's."""
    if files:
        change = partial(_apply, conn, files, schema=schema, role=role)
        await with_retries(conn, change, what=files[0].file, patience_s=patience_s)


async def _apply(conn: Any, files: list[SqlFile], *, schema: str, role: str) -> None:
    """Run the files in one transaction, and remember each with its checksum."""
    current = files[0]
    try:
        async with conn.transaction():
            # Forced row-level security binds an owner that is no superuser too: migrations act for all tenants.
            await conn.execute(
                f"SET LOCAL search_path TO {_quote(schema)}, public; SELECT set_config('wayline.tenant', '*', true)"
            )
            for current in files:
                await conn.execute(current.statements)
                await _remember(conn, current, schema=schema)
            await _close_functions(conn, schema=schema, role=role)
    except BLOCKED:
        raise
    except asyncpg.PostgresError as error:
        raise MigrationFailed(file=current.file, line=_line(error, current), cause=str(error)) from error


async def _remember(conn: Any, file: SqlFile, *, schema: str) -> None:
    await conn.execute(
        f"""
        INSERT INTO {_quote(schema)}.{APPLIED_TABLE} (version, file, checksum, older_may_run) VALUES ($1, $2, $3, $4)
        ON CONFLICT (version) DO UPDATE SET checksum = excluded.checksum, applied_at = now()
        """,
        file.version,
        file.file,
        file.checksum,
        file.older_may_run,
    )


async def _forget(conn: Any, versions: list[str], *, schema: str) -> None:
    await conn.execute(f"DELETE FROM {_quote(schema)}.{APPLIED_TABLE} WHERE version = ANY ($1::text[])", versions)


async def _close_functions(conn: Any, *, schema: str, role: str) -> None:
    """Leave functions to the service alone.

    Postgres lets every role call a new function, also one that runs with its owner's rights.
    """
    name, grantee = _quote(schema), _quote(role)
    await conn.execute(f"""
        REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA {name} FROM PUBLIC;
        GRANT EXECUTE ON ALL ROUTINES IN SCHEMA {name} TO {grantee};
    """)


def _line(error: asyncpg.PostgresError, file: SqlFile) -> int | None:
    """Return the line of the file that Postgres's error points to, where it points to one."""
    position = getattr(error, "position", None)
    if not position:
        return None
    return file.starts_at_line + file.statements.count("\n", 0, int(position) - 1)


async def _create_vector(conn: Any) -> None:
    if not await conn.fetchval("SELECT count(*) FROM pg_available_extensions WHERE name = $1", VECTOR):
        raise VectorMissing
    await conn.execute(f"CREATE EXTENSION IF NOT EXISTS {VECTOR} WITH SCHEMA public")


async def create_login(conn: Any, *, role: str, login: str, password: str) -> None:
    """Create the role that holds a service's rights and the one by which it logs in, which may be the same.

    Where they are two, the first keeps its password, if it has one: it may be the login before this one.
    """
    if login != role:
        await _create_role(conn, role=role, password=None)
    await _create_role(conn, role=login, password=password)
    if login != role:
        await conn.execute(f"GRANT {_quote(role)} TO {_quote(login)}")


async def _create_role(conn: Any, *, role: str, password: str | None) -> None:
    """Create a role that may log in and nothing else, and check its attributes, even where they are the defaults.

    Without a password it is left as it is, and a new one may not log in.
    """
    # CREATE ROLE takes no parameters, so Postgres itself quotes the words.
    found = await conn.fetchrow("SELECT rolsuper OR rolbypassrls AS powerful FROM pg_roles WHERE rolname = $1", role)
    if found and found["powerful"]:
        raise RoleTooPowerful(role=role)
    if password is None:
        if not found:
            await conn.execute(f"CREATE ROLE {_quote(role)}")
        return
    statement = await conn.fetchval(
        f"SELECT format('{'ALTER' if found else 'CREATE'} ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)",
        role,
        password,
    )
    await conn.execute(statement)
    for setting, value in DEAD_CLIENTS.items():
        await conn.execute(f"ALTER ROLE {_quote(role)} SET {setting} = '{value}'")


async def _create_schema(conn: Any, *, schema: str, role: str) -> None:
    """Create the schema, and let the role read and write rows in it and nothing else."""
    name, grantee = _quote(schema), _quote(role)
    async with conn.transaction():
        await conn.execute(f"""
            CREATE SCHEMA IF NOT EXISTS {name};
            CREATE TABLE IF NOT EXISTS {name}.{APPLIED_TABLE} (
                version text PRIMARY KEY,
                file text NOT NULL,
                checksum text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT now(),
                older_may_run boolean NOT NULL DEFAULT false
            );
            CREATE TABLE IF NOT EXISTS {name}.{PROBE_TABLE} (
                one boolean PRIMARY KEY DEFAULT true CHECK (one),
                written_at timestamptz NOT NULL
            );
            GRANT USAGE ON SCHEMA {name} TO {grantee};
            ALTER DEFAULT PRIVILEGES IN SCHEMA {name} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {grantee};
            ALTER DEFAULT PRIVILEGES IN SCHEMA {name} GRANT USAGE, SELECT ON SEQUENCES TO {grantee};
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {grantee};
            GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {name} TO {grantee};
            REVOKE ALL ON {name}.{APPLIED_TABLE} FROM {grantee};
        """)
        # Nothing is altered where it is there: who reads the table is not waited for.
        if not await conn.fetchval(_HAS_COLUMN, f"{name}.{APPLIED_TABLE}"):
            await conn.execute(
                f"ALTER TABLE {name}.{APPLIED_TABLE} ADD COLUMN older_may_run boolean NOT NULL DEFAULT false"
            )
        # A probe asks the disk for a page of its own.
        database = await conn.fetchval("SELECT quote_ident(current_database())")
        await conn.execute(f"GRANT TEMPORARY ON DATABASE {database} TO {grantee}")
        # Also those that an earlier version has left open.
        await _close_functions(conn, schema=schema, role=role)


def _quote(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
