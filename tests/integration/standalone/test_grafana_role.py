"""Grafana's role reads every tenant's traces; tried on every function and table there is, it can change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from wayline.standalone.services import MEMBERS
from wayline.standalone.setup.credentials import Credentials
from wayline.standalone.setup.installation import GRAFANA, ServerAccess
from wayline.standalone.setup.migrations import migrate_database
from wayline.store import Store
from wayline.testkit import Database
from wayline.testkit.walks import cases

PASSWORD = "secret"
OURS = """
    namespace.nspname NOT LIKE 'pg\\_%' AND namespace.nspname <> 'information_schema'
    -- What an extension brings is its own; pgvector's functions only compute.
    AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = {oid} AND deptype = 'e')
"""
FUNCTIONS = f"""
SELECT format('%I.%I', namespace.nspname, proname) AS name, prosecdef AS definer,
    (SELECT string_agg(format('NULL::%s', format_type(kind, NULL)), ', ') FROM unnest(proargtypes) AS kind) AS nulls
FROM pg_proc JOIN pg_namespace AS namespace ON namespace.oid = pronamespace
WHERE prokind IN ('f', 'p') AND prorettype <> 'trigger'::regtype AND {OURS.format(oid="pg_proc.oid")}
ORDER BY 1
"""
RELATIONS = f"""
SELECT format('%I.%I', namespace.nspname, relname) AS name, namespace.nspname AS schema, relkind::text AS kind,
    -- Nobody may set an identity: what is refused then says nothing about the role.
    (SELECT quote_ident(attname) FROM pg_attribute
        WHERE attrelid = pg_class.oid AND attnum > 0 AND attidentity = '' ORDER BY attnum LIMIT 1) AS first
FROM pg_class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
WHERE relkind IN ('r', 'p', 'S', 'v', 'm') AND {OURS.format(oid="pg_class.oid")}
ORDER BY 1
"""
DENIED = asyncpg.InsufficientPrivilegeError


@pytest.fixture
async def access(database: Database) -> AsyncIterator[ServerAccess]:
    passwords = dict.fromkeys([*(member.identity for member in MEMBERS), GRAFANA], PASSWORD)
    access = ServerAccess("", database.dsn, Credentials({}, passwords), own_bus=False)
    async for _ in migrate_database(access):
        pass
    tracing = await Store.connect(access.dsn_of("wayline_tracing", "tracing"), schema="tracing")
    async with tracing.system() as conn:
        await conn.execute("SELECT * FROM keep_spans(2)")
    await tracing.close()
    yield access


@pytest.fixture
async def grafana(access: ServerAccess) -> AsyncIterator[asyncpg.Connection]:
    """A session of its role that has switched off what only the role's own settings forbid."""
    conn = await asyncpg.connect(access.dsn_of("wayline_grafana", GRAFANA))
    await conn.execute("SET default_transaction_read_only = off")
    yield conn
    await conn.close()


@pytest.fixture
async def admin(database: Database, access: ServerAccess) -> AsyncIterator[asyncpg.Connection]:
    conn = await asyncpg.connect(database.dsn)
    yield conn
    await conn.close()


async def test_grafana_may_call_no_function(admin: asyncpg.Connection, grafana: asyncpg.Connection):
    functions = await admin.fetch(FUNCTIONS)

    assert {"tracing.keep_spans", "tracing.keep_partitions"} <= {row["name"] for row in functions if row["definer"]}
    for function in functions:
        with pytest.raises(DENIED):
            await grafana.execute(f"SELECT {function['name']}({function['nulls'] or ''})")


async def test_grafana_may_write_to_no_table(admin: asyncpg.Connection, grafana: asyncpg.Connection):
    relations = await admin.fetch(RELATIONS)
    kinds = {row["kind"] for row in relations}

    assert {"r", "p"} <= kinds
    for relation in relations:
        name, first = relation["name"], relation["first"]
        tried = [f"DROP TABLE {name}", f"ALTER TABLE {name} ADD COLUMN more integer"]
        if relation["kind"] == "S":
            tried = [f"SELECT nextval('{name}')", f"SELECT setval('{name}', 1)"]
        elif relation["kind"] in {"r", "p"}:
            changes = (
                f"INSERT INTO {name} DEFAULT VALUES",
                f"UPDATE {name} SET {first} = {first}",
                f"DELETE FROM {name}",
                f"TRUNCATE {name}",
                f"BEGIN; LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE; COMMIT",
                f"CREATE INDEX ON {name} ({first})",
                f"CREATE POLICY more ON {name} USING (true)",
            )
            tried += changes
        for statement in tried:
            with pytest.raises(DENIED):
                await grafana.execute(statement)
            await grafana.execute("ROLLBACK")


async def test_grafana_reads_traces_and_no_other_schema(admin: asyncpg.Connection, grafana: asyncpg.Connection):
    for relation in await admin.fetch(RELATIONS):
        if relation["kind"] == "S":
            continue
        read = grafana.fetch(f"SELECT * FROM {relation['name']} LIMIT 1")
        if relation["schema"] == "tracing" and not relation["name"].endswith(".applied_migrations"):
            assert await read == []
        else:
            with pytest.raises(DENIED):
                await read


async def test_grafana_makes_nothing_of_its_own(grafana: asyncpg.Connection):
    for statement in (
        "CREATE TABLE public.mine (n integer)",
        "CREATE TABLE tracing.mine (n integer)",
        "CREATE SCHEMA mine",
        "CREATE FUNCTION public.mine() RETURNS integer LANGUAGE sql RETURN 1",
        "SELECT lo_create(0)",
        "SELECT lo_from_bytea(0, '\\x00')",
        "COPY (SELECT 1) TO PROGRAM 'true'",
    ):
        with pytest.raises(DENIED):
            await grafana.execute(statement)


@pytest.mark.parametrize("days", cases([None, -1, 0, 3_661, 2_000_000_000]))
async def test_how_long_spans_are_kept_is_bounded(access: ServerAccess, days: int | None):
    tracing = await Store.connect(access.dsn_of("wayline_tracing", "tracing"), schema="tracing")
    try:
        for function in ("keep_spans", "keep_partitions"):
            with pytest.raises(asyncpg.InvalidParameterValueError, match="1 to 3660 days"):
                await tracing.fetchval("acme", f"SELECT first_day FROM {function}($1)", days)
    finally:
        await tracing.close()
