"""A service sees one tenant's rows, or says that it acts for all."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from wayline.store import Store, TenantInvalid, migrate
from wayline.testkit import Database
from wayline.testkit.walks import cases

NOTES = """
-- migrate:up
CREATE TABLE notes (
    tenant text NOT NULL,
    id text NOT NULL,
    body jsonb,
    PRIMARY KEY (tenant, id)
);
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE notes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON notes USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);
-- migrate:down
DROP TABLE notes;
"""
INSERT = "INSERT INTO notes (tenant, id) VALUES ($1, $2)"


@pytest.fixture
async def store(database: Database, tmp_path: Path) -> AsyncIterator[Store]:
    """One connection only, so that every statement meets what the one before left behind."""
    (tmp_path / "0001_notes.sql").write_text(NOTES)
    await migrate(database.dsn, schema="notes", role="notes_service", password="secret", directory=tmp_path)
    store = await Store.connect(database.as_role("notes_service", "secret"), schema="notes", max_size=1)
    yield store
    await store.close()


async def test_a_tenant_sees_its_own_rows_only(store: Store):
    await store.execute("acme", INSERT, "acme", "a")
    await store.execute("globex", INSERT, "globex", "g")

    assert [row["id"] for row in await store.fetch("acme", "SELECT id FROM notes")] == ["a"]
    async with store.tenant("globex") as conn:
        assert await conn.fetchval("SELECT id FROM notes") == "g"


async def test_one_statement_with_several_arguments_writes_all_or_none(store: Store):
    await store.executemany("acme", INSERT, [("acme", "a"), ("acme", "b")])
    with pytest.raises(asyncpg.UniqueViolationError):
        await store.executemany("acme", INSERT, [("acme", "c"), ("acme", "a")])

    assert [row["id"] for row in await store.fetch("acme", "SELECT id FROM notes ORDER BY id")] == ["a", "b"]


async def test_the_tenant_is_gone_from_the_pooled_connection_afterwards(store: Store):
    async with store.tenant("acme") as conn:
        await conn.execute(INSERT, "acme", "a")
        session = await conn.fetchval("SELECT pg_backend_pid()")

    async with store._pool.acquire() as conn:
        assert await conn.fetchval("SELECT pg_backend_pid()") == session
        assert await conn.fetch("SELECT * FROM notes") == []
        assert not await conn.fetchval("SELECT current_setting('wayline.tenant', true)")


async def test_a_reused_connection_acts_for_the_new_tenant(store: Store):
    await store.execute("acme", INSERT, "acme", "a")
    with pytest.raises(asyncpg.UniqueViolationError):
        await store.execute("acme", INSERT, "acme", "a")

    assert await store.fetch("globex", "SELECT * FROM notes") == []
    async with store.system() as conn:
        await conn.execute(INSERT, "globex", "g")
    assert [row["id"] for row in await store.fetch("globex", "SELECT id FROM notes")] == ["g"]
    assert [row["id"] for row in await store.fetch("acme", "SELECT id FROM notes")] == ["a"]


async def test_a_transaction_does_not_act_for_the_statement_before_it(store: Store):
    await store.execute("acme", INSERT, "acme", "a")

    async with store.tenant("globex") as conn:
        assert await conn.fetch("SELECT * FROM notes") == []


async def test_a_right_to_act_for_all_ends_with_its_transaction(store: Store):
    async with store.system() as conn:
        await conn.execute(INSERT, "acme", "a")

    async with store._pool.acquire() as conn:
        assert not conn.is_in_transaction()
        assert await conn.fetch("SELECT * FROM notes") == []


async def test_a_change_of_tenant_that_was_cut_short_is_made_again(store: Store, monkeypatch: pytest.MonkeyPatch):
    await store.execute("acme", INSERT, "acme", "a")
    execute = asyncpg.Connection.execute

    async def cut(conn: asyncpg.Connection, query: str, *args: object, **options: float) -> str:
        await execute(conn, query, *args, **options)
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(asyncpg.Connection, "execute", cut)
        with pytest.raises(asyncio.CancelledError):
            await store.fetch("globex", "SELECT * FROM notes")

    assert [row["id"] for row in await store.fetch("acme", "SELECT id FROM notes")] == ["a"]


async def test_a_transaction_takes_three_round_trips(store: Store):
    sent: list[str] = []
    async with store._pool.acquire() as conn:
        conn.add_query_logger(lambda record: sent.append(record.query))

    async with store.system() as conn:
        await conn.fetchval("SELECT 1")

    assert sent == ["BEGIN; SELECT set_config('wayline.tenant', '*', true)", "SELECT 1", "COMMIT;"]


@pytest.mark.parametrize("answered", [False, True])
async def test_a_transaction_cut_as_it_begins_leaves_nothing_to_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch, answered: bool
):
    await store.execute("acme", INSERT, "acme", "a")
    real = asyncpg.Connection.execute

    async def cut(conn: asyncpg.Connection, query: str, *args: object, timeout: float | None = None) -> str:
        if answered:
            await real(conn, query, *args, timeout=timeout)
        raise asyncio.CancelledError

    with monkeypatch.context() as patched, pytest.raises(asyncio.CancelledError):
        patched.setattr(asyncpg.Connection, "execute", cut)
        async with store.system():
            pass

    assert await store.fetch("globex", "SELECT * FROM notes") == []
    async with store.tenant("globex") as conn:
        assert await conn.fetch("SELECT * FROM notes") == []
    assert [row["id"] for row in await store.fetch("acme", "SELECT id FROM notes")] == ["a"]


async def test_a_row_of_another_tenant_is_refused(store: Store):
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await store.execute("acme", INSERT, "globex", "g")


async def test_a_row_cannot_be_given_to_another_tenant(store: Store):
    await store.execute("acme", INSERT, "acme", "a")

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await store.execute("acme", "UPDATE notes SET tenant = 'globex'")


async def test_the_service_itself_sees_every_tenant(store: Store):
    async with store.system() as conn:
        await conn.executemany(INSERT, [("acme", "a"), ("globex", "g")])

    async with store.system() as conn:
        assert await conn.fetchval("SELECT count(*) FROM notes") == 2


async def test_an_error_rolls_the_whole_transaction_back(store: Store):
    with pytest.raises(RuntimeError):
        async with store.tenant("acme") as conn:
            await conn.execute(INSERT, "acme", "a")
            raise RuntimeError("after the first statement")

    assert await store.fetch("acme", "SELECT * FROM notes") == []


@pytest.mark.parametrize("name", cases(["*", "", "Acme", "a'; DROP TABLE notes; --", "a" * 64, "acme\n"]))
async def test_only_a_slug_is_a_tenant(store: Store, name: str):
    with pytest.raises(TenantInvalid):
        await store.fetch(name, "SELECT 1")
    with pytest.raises(TenantInvalid):
        async with store.tenant(name):
            pass


async def test_json_goes_in_and_comes_out_as_python_objects(store: Store):
    body = {"words": ["one", "two"], "count": 2, "umlaut": "ü"}

    stored = await store.fetchval("acme", "INSERT INTO notes VALUES ('acme', 'a', $1) RETURNING body", body)

    assert stored == body
