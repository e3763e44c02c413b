"""Every table with a tenant column refuses another tenant, asked as the service's own role; found in the catalogue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import asyncpg
import pytest

from wayline.standalone.services import MEMBERS
from wayline.standalone.setup.credentials import Credentials
from wayline.standalone.setup.installation import GRAFANA, ServerAccess
from wayline.standalone.setup.migrations import migrate_database
from wayline.store import Store
from wayline.testkit import Database

OWN, OTHER = "acme", "globex"
TABLES = """
SELECT namespace.nspname AS schema, format('%I.%I', namespace.nspname, relname) AS name, relkind::text AS kind,
    ARRAY(
        SELECT quote_ident(attname) FROM pg_attribute
        WHERE attrelid = pg_class.oid AND attnum > 0 AND atttypid = 'timestamptz'::regtype
    ) AS times
FROM pg_class
JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
JOIN pg_attribute AS tenant ON tenant.attrelid = pg_class.oid AND tenant.attname = 'tenant'
WHERE relkind IN ('r', 'p') AND namespace.nspname = ANY ($1)
ORDER BY 2
"""
# The rows of the test hold a tenant and nothing else: only the policies are left of what refuses them.
LOOSEN = """
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT conrelid::regclass AS name, conname FROM pg_constraint
        WHERE connamespace::regnamespace::text = ANY (string_to_array('{schemas}', ','))
            AND contype <> 'n' AND conparentid = 0 AND conrelid <> 0
        ORDER BY contype = 'f' DESC
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I CASCADE', found.name, found.conname);
    END LOOP;
    FOR found IN
        SELECT attrelid::regclass AS name, attname
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace::regnamespace::text = ANY (string_to_array('{schemas}', ','))
            AND relkind IN ('r', 'p') AND NOT relispartition AND attnum > 0 AND attnotnull AND attidentity = ''
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER %I DROP NOT NULL', found.name, found.attname);
    END LOOP;
    FOR found IN
        SELECT tgrelid::regclass AS name, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
        WHERE relnamespace::regnamespace::text = ANY (string_to_array('{schemas}', ',')) AND NOT tgisinternal
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', found.tgname, found.name);
    END LOOP;
END $$
"""
POLICIES = """
SELECT polrelid::regclass::text AS name, quote_ident(polname) AS policy, pg_get_expr(polqual, polrelid) AS qual
FROM pg_policy WHERE polrelid = $1::regclass
"""


@dataclass(frozen=True)
class Table:
    """A table with a column `tenant`, and the store of the service that owns it."""

    name: str
    times: tuple[str, ...]
    store: Store
    nobody: asyncpg.Connection
    """A session of the same role that says for no tenant that it acts."""

    def row_of(self, tenant: str) -> str:
        """Insert a row of a tenant; its times are now, so that it has a partition."""
        columns = ", ".join(("tenant", *self.times))
        return f"INSERT INTO {self.name} ({columns}) VALUES ('{tenant}'{', now()' * len(self.times)})"

    async def leaks(self) -> list[str]:
        """Return what one tenant can do with another's row, none where the policy holds."""
        found: list[str] = []
        if await self.store.fetchval(OWN, f"SELECT count(*) FROM {self.name} WHERE tenant = '{OTHER}'"):
            found.append("reads it")
        if await self._did(f"UPDATE {self.name} SET tenant = tenant WHERE tenant = '{OTHER}'"):
            found.append("changes it")
        if await self._did(f"UPDATE {self.name} SET tenant = '{OTHER}' WHERE tenant = '{OWN}'"):
            found.append("gives it one of its own")
        if await self._did(self.row_of(OTHER)):
            found.append("adds one")
        if await self._did(f"DELETE FROM {self.name} WHERE tenant = '{OTHER}'"):
            found.append("deletes it")
        return found

    async def _did(self, statement: str) -> bool:
        """Whether a statement of one tenant changed anything; what it changed is taken back."""
        try:
            async with self.store.tenant(OWN) as conn:
                savepoint = conn.transaction()
                await savepoint.start()
                told = await conn.execute(statement)
                await savepoint.rollback()
        except asyncpg.InsufficientPrivilegeError:
            return False
        except asyncpg.CheckViolationError:
            # The policy let it pass: it is only another day's partition.
            return True
        return not told.endswith(" 0")


@dataclass(frozen=True)
class Tables:
    """Every table of every schema, each with a row of two tenants."""

    admin: asyncpg.Connection
    all: tuple[Table, ...]

    async def leaks(self) -> dict[str, list[str]]:
        found = {table.name: await table.leaks() for table in self.all}
        return {name: leaks for name, leaks in found.items() if leaks}


@pytest.fixture
async def tables(database: Database) -> AsyncIterator[Tables]:
    passwords = dict.fromkeys([*(member.identity for member in MEMBERS), GRAFANA], "secret")
    access = ServerAccess("", database.dsn, Credentials({}, passwords), own_bus=False)
    async for _ in migrate_database(access):
        pass
    owners = {member.schema: member for member in MEMBERS if member.schema}
    async with AsyncExitStack() as ends:
        admin = await asyncpg.connect(database.dsn)
        ends.push_async_callback(admin.close)
        stores: dict[str, Store] = {}
        nobody: dict[str, asyncpg.Connection] = {}
        for schema, member in owners.items():
            dsn = access.dsn_of(member.role, member.identity)
            stores[schema] = await Store.connect(dsn, schema=schema)
            ends.push_async_callback(stores[schema].close)
            nobody[schema] = await asyncpg.connect(dsn)
            ends.push_async_callback(nobody[schema].close)
        await stores["tracing"].fetchval("acme", "SELECT first_day FROM keep_spans(1)")
        await admin.execute(LOOSEN.format(schemas=",".join(owners)))
        found = await admin.fetch(TABLES, list(owners))
        every = tuple(
            Table(row["name"], tuple(row["times"]), stores[row["schema"]], nobody[row["schema"]]) for row in found
        )
        # A partition's rows come in through their table; its own policy is for who names it.
        for table in (table for table, row in zip(every, found, strict=True) if not _is_partition(row["name"])):
            for tenant in (OWN, OTHER):
                await admin.execute(table.row_of(tenant))
        yield Tables(admin, every)


def _is_partition(name: str) -> bool:
    return name.startswith("tracing.spans_")


async def test_no_table_shows_or_takes_another_tenants_row(tables: Tables):
    names = {table.name for table in tables.all}

    schemas = {name.partition(".")[0] for name in names}
    assert schemas == {"gateway", "router", "retrieval", "tools", "tracing", "notifier"}
    assert {"tracing.ledger", "router.reservations", "tools.calls", "gateway.api_keys", "retrieval.chunks"} <= names
    assert len([name for name in names if _is_partition(name)]) >= 3
    assert await tables.leaks() == {}


async def test_a_tenant_sees_its_own_rows_and_no_tenant_none(tables: Tables):
    for table in tables.all:
        seen = f"SELECT count(*) FROM {table.name} WHERE tenant = '{OWN}'"
        if not _is_partition(table.name):
            assert await table.store.fetchval(OWN, seen) == 1, table.name
        assert await table.nobody.fetchval(seen) == 0, table.name


async def test_a_policy_weakened_by_an_or_is_found_in_every_table(tables: Tables):
    for table in tables.all:
        for row in await tables.admin.fetch(POLICIES, table.name):
            await tables.admin.execute(f"ALTER POLICY {row['policy']} ON {row['name']} USING (true OR {row['qual']})")

    weak = await tables.leaks()

    assert set(weak) == {table.name for table in tables.all}
    assert [name for name, leaks in weak.items() if "reads it" not in leaks and not _is_partition(name)] == []
