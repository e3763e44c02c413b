"""A service's own tables: every statement runs for one tenant, or explicitly for all."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeAlias, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from wayline.store.connecting import address, reach, require_version, unavailable
from wayline.store.errors import PoolerUnannounced, SchemaMissing, TenantInvalid
from wayline.store.pooler import read_pool_mode
from wayline.store.queries import Queries
from wayline.store.several_hosts import Hosts, NoPrimary, is_unreachable
from wayline.store.table_catalogue import PROBE_TABLE
from wayline.store.transient_errors import is_away

Record: TypeAlias = asyncpg.Record
Connection: TypeAlias = PoolConnectionProxy

EVERY_TENANT = "*"
# Longer than any statement of ours should take; a stuck one must not hold a connection for ever.
COMMAND_TIMEOUT_S = 60.0
# How long a statement waits for one of the pool's connections.
ACQUIRE_WAIT_S = 30.0
# Of one connection; asyncpg's own number.
STATEMENTS_PREPARED_MAX = 100

CHECK = f"""
-- Emptied at each commit, so each insert asks the disk for a page: an update alone may find room where rows were.
CREATE TEMPORARY TABLE IF NOT EXISTS {PROBE_TABLE}_page (written_at timestamptz) ON COMMIT DELETE ROWS;
INSERT INTO pg_temp.{PROBE_TABLE}_page VALUES (clock_timestamp());
INSERT INTO {PROBE_TABLE} AS last (written_at) VALUES (clock_timestamp())
ON CONFLICT (one) DO UPDATE SET written_at = excluded.written_at;
"""

_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class Store:
    """A pool of connections to one service's schema, with the tenant of every statement made explicit."""

    def __init__(
        self, pool: asyncpg.Pool, *, schema: str, sql: Queries, where: str, per_transaction: str | None = None
    ) -> None:
        self.schema = schema
        self.sql = sql
        self._pool = pool
        self._where = where
        self._per_transaction = per_transaction
        """What each transaction sets for itself, where sessions are a pooler's; None: the session is ours."""

    @classmethod
    async def connect(
        cls,
        dsn: str,
        *,
        schema: str,
        queries: Path | Traversable | None = None,
        min_size: int = 1,
        max_size: int = 10,
        wait_s: float = 0.0,
        init: Callable[[Any], Awaitable[None]] | None = None,
        session: Mapping[str, str] | None = None,
    ) -> "Store":
        """Open the pool; `wait_s` is how long to wait for a Postgres that is away.

        `init` prepares each connection without changing its session; `session` names Postgres's settings in it.
        """
        dsn, pooled = read_pool_mode(dsn)
        # `public` after our own: that is where pgvector's types and operators are.
        chosen = {"search_path": f'"{schema}", public', **(session or {})}
        sql = Queries.load(queries) if queries is not None else Queries({}, source="this store")

        async def prepare(conn: Any) -> None:
            # In one transaction, which is one session also behind a pooler.
            async with conn.transaction() if pooled else nullcontext():
                await _use_python_json(conn)
                if init is not None:
                    await init(conn)

        hosts = Hosts(dsn)

        async def open_pool() -> asyncpg.Pool:
            return await asyncpg.create_pool(
                dsn,
                min_size=min_size,
                max_size=max_size,
                connect=hosts.connect,
                command_timeout=COMMAND_TIMEOUT_S,
                init=prepare,
                reset=_reset,
                connection_class=_Connection,
                server_settings={"application_name": f"wayline-{schema}", **({} if pooled else chosen)},
                statement_cache_size=0 if pooled else STATEMENTS_PREPARED_MAX,
            )

        opened = await reach(dsn, open_pool, wait_s=wait_s)
        store = cls(
            opened, schema=schema, sql=sql, where=address(dsn), per_transaction=_set(chosen) if pooled else None
        )
        try:
            await store._require_schema()
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Give the connections back, waiting for the statements that run."""
        await self._pool.close()

    @asynccontextmanager
    async def tenant(self, tenant: str) -> AsyncIterator[Connection]:
        """Open a transaction that sees and writes the rows of one tenant only."""
        async with self._transaction(_slug(tenant)) as conn:
            yield conn

    @asynccontextmanager
    async def system(self) -> AsyncIterator[Connection]:
        """Open a transaction in which the service acts for all tenants."""
        async with self._transaction(EVERY_TENANT) as conn:
            yield conn

    async def check(self) -> None:
        """Check that rows can be written, and that there is room for more. Raises PostgresUnavailable."""
        async with self.system() as conn:
            await conn.execute(CHECK)

    async def true_columns(self, sql: str, *args: Any) -> list[str]:
        """Return the names of the columns that are true in the one row of a statement that is run for all tenants."""
        async with self.system() as conn:
            row = await conn.fetchrow(sql, *args)
        return [name for name, value in (row or {}).items() if value]

    async def fetch(self, tenant: str, sql: str, *args: Any) -> list[Record]:
        """Return the rows of one statement run for a tenant."""
        async with self._connection(_slug(tenant)) as conn:
            return await conn.fetch(sql, *args)

    async def fetchrow(self, tenant: str, sql: str, *args: Any) -> Record | None:
        """Return the first row of one statement run for a tenant."""
        async with self._connection(_slug(tenant)) as conn:
            return await conn.fetchrow(sql, *args)

    async def fetchval(self, tenant: str, sql: str, *args: Any) -> Any:
        """Return the first value of one statement run for a tenant."""
        async with self._connection(_slug(tenant)) as conn:
            return await conn.fetchval(sql, *args)

    async def execute(self, tenant: str, sql: str, *args: Any) -> str:
        """Run one statement for a tenant; the answer is Postgres's own, such as `INSERT 0 1`."""
        async with self._connection(_slug(tenant)) as conn:
            return await conn.execute(sql, *args)

    async def executemany(self, tenant: str, sql: str, args: Iterable[Sequence[Any]]) -> None:
        """Run one statement for a tenant with each of several arguments, all or none."""
        async with self._connection(_slug(tenant)) as conn:
            await conn.executemany(sql, args)

    @asynccontextmanager
    async def _transaction(self, context: str) -> AsyncIterator[Connection]:
        async with self._connection() as conn, cast(_Connection, conn).transaction_for(context, self._per_transaction):
            yield conn

    @asynccontextmanager
    async def _connection(self, tenant: str | None = None) -> AsyncIterator[Connection]:
        """Lend a pooled connection; tell what passes by itself apart from a statement that is wrong.

        Its single statements act for the tenant that is given: one round trip where they did so before, else two.
        """
        try:
            conn = await self._pool.acquire(timeout=ACQUIRE_WAIT_S)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, NoPrimary) as error:
            if not is_unreachable(error):
                raise
            raise unavailable(error, where=self._where) from error
        try:
            if tenant is not None and self._per_transaction is not None:
                async with cast(_Connection, conn).transaction_for(tenant, self._per_transaction):
                    yield conn
                return
            if tenant is not None:
                await cast(_Connection, conn).act_for(tenant)
            yield conn
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            if is_away(error) or _is_lost(conn):
                raise unavailable(error, where=self._where, ran=True) from error
            raise
        finally:
            await self._pool.release(conn)

    async def _require_schema(self) -> None:
        async with self._pool.acquire() as conn:
            require_version(conn)
            if self._per_transaction is None and self.schema not in await conn.fetchval("SHOW search_path"):
                raise PoolerUnannounced(where=self._where)
            if not await conn.fetchval("SELECT has_schema_privilege(to_regnamespace($1), 'USAGE')", f'"{self.schema}"'):
                raise SchemaMissing(schema=self.schema)


def _slug(tenant: str) -> str:
    if not _SLUG.fullmatch(tenant):
        raise TenantInvalid(tenant=tenant)
    return tenant


class _Connection(asyncpg.Connection):
    """A connection that keeps the tenant it last acted for, which most of the time is the next one's too.

    "Every tenant" is never kept: only a transaction may act for all, and the word ends with it.
    """

    __slots__ = ("_acts_for", "_begins_with")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._acts_for = ""
        self._begins_with = ""
        """What the next transaction sets, in the round trip that begins it."""

    @asynccontextmanager
    async def transaction_for(self, context: str, more: str | None = None) -> AsyncIterator[None]:
        """Open a transaction that acts for a tenant, or for all of them, and does one thing more first."""
        self._begins_with = "; ".join(filter(None, [more, _set_context(context, local=True)]))
        # Consumed by the statement that begins it, which asyncpg sends by `execute` before anything else is awaited.
        async with self.transaction():
            yield

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        if self._begins_with:
            query, self._begins_with = f"{query} {self._begins_with}", ""
        return await super().execute(query, *args, timeout=timeout)

    async def act_for(self, tenant: str) -> None:
        """Make single statements act for a tenant from now on."""
        if self._acts_for == tenant:
            return
        # Unknown until the server has answered: a cancellation may come before or after the change.
        self._acts_for = ""
        await self.execute(_set_context(tenant, local=False))
        self._acts_for = tenant


def _set(settings: Mapping[str, str]) -> str:
    chosen = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
    return f"SELECT {chosen}"


def _set_context(context: str, *, local: bool) -> str:
    # A literal, which the simple protocol takes in one round trip: `_slug` has let nothing through to escape.
    return f"SELECT set_config('wayline.tenant', '{context}', {str(local).lower()})"


def _is_lost(conn: Connection) -> bool:
    try:
        return conn.is_closed()
    except asyncpg.InterfaceError:
        # The pool has taken a broken connection away from under its user.
        return True


async def _reset(conn: Any) -> None:
    """Do nothing: asyncpg has rolled back open transactions, and the tenant is set before each use."""
    # Its own reset of session state would cost every statement one more round trip.


async def _use_python_json(conn: Any) -> None:
    for kind in ("json", "jsonb"):
        await conn.set_type_codec(kind, schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
