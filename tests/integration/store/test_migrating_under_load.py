"""Schemas change while services work: nobody waits behind a migration, and an index that was cut is made again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from wayline.store import MigrationBlocked, MigrationFailed, migrate
from wayline.testkit import Database, until

TABLE = "-- migrate:up\nCREATE TABLE notes (id text);\n-- migrate:down\n"
COLUMN = "-- migrate:up\nALTER TABLE notes ADD COLUMN more text;\n-- migrate:down\n"
INDEX = "-- migrate:up transaction:false\nCREATE {}INDEX CONCURRENTLY notes_by_id ON notes (id);\n-- migrate:down\n"
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1"
INDEXES = """
SELECT array_agg(indisvalid) FROM pg_index WHERE indrelid = 'notes.notes'::regclass
"""
WRITES = 20
"""How many writes must come through while a migration waits."""


@pytest.fixture
async def notes(database: Database, tmp_path: Path) -> Path:
    """Return the migrations of a schema that has one table."""
    (tmp_path / "0001_notes.sql").write_text(TABLE)
    await apply(database, tmp_path)
    return tmp_path


async def apply(database: Database, directory: Path, **more: Any) -> list[str]:
    known = {"schema": "notes", "role": "notes_service", "password": "secret"}
    return await migrate(database.dsn, directory=directory, **known, **more)


@asynccontextmanager
async def connected(database: Database) -> AsyncIterator[asyncpg.Connection]:
    conn = await asyncpg.connect(database.dsn)
    try:
        yield conn
    finally:
        await conn.close()


@asynccontextmanager
async def in_a_long_transaction(database: Database, statement: str) -> AsyncIterator[None]:
    async with connected(database) as conn, conn.transaction():
        await conn.execute(statement)
        yield


async def seen(conn: asyncpg.Connection, query: str, *values: Any) -> bool:
    return bool(await conn.fetchval(query, *values))


@pytest.mark.parametrize("text", [COLUMN, INDEX.format("")], ids=["column", "index"])
async def test_writers_go_on_while_a_migration_waits_for_a_transaction(database: Database, notes: Path, text: str):
    (notes / "0002_more.sql").write_text(text)
    changing = text.splitlines()[1].split(" notes", 1)[0] + "%"

    async with connected(database) as writer, connected(database) as watcher:
        async with in_a_long_transaction(database, "INSERT INTO notes.notes VALUES ('held')"):
            migrating = asyncio.create_task(apply(database, notes))
            await until(partial(seen, watcher, WAITS, f"%{changing}"), why="the migration waits for the transaction")
            for n in range(WRITES):
                async with asyncio.timeout(30):
                    await writer.execute("INSERT INTO notes.notes VALUES ($1)", str(n))
            assert not migrating.done()

        assert await migrating == ["0002_more.sql"]
        assert await writer.fetchval("SELECT count(*) FROM notes.notes") == WRITES + 1


async def test_a_migration_that_never_gets_its_lock_names_its_holder(database: Database, notes: Path):
    (notes / "0002_more.sql").write_text(COLUMN)

    async with in_a_long_transaction(database, "INSERT INTO notes.notes VALUES ('held')"):
        with pytest.raises(MigrationBlocked, match=r"0002_more.sql was locked by others .* process \d+ of \w+"):
            await apply(database, notes, patience_s=1.2)

    assert await apply(database, notes) == ["0002_more.sql"]


async def test_nothing_to_migrate_waits_for_no_transaction(database: Database, notes: Path):
    held = "LOCK notes.notes IN ACCESS EXCLUSIVE MODE; LOCK notes.applied_migrations IN ACCESS SHARE MODE"
    async with in_a_long_transaction(database, held):
        assert await apply(database, notes, patience_s=0.1) == []


async def test_an_index_that_a_killed_run_left_is_made_again(database: Database, notes: Path):
    (notes / "0002_index.sql").write_text(INDEX.format(""))

    async with connected(database) as watcher:
        async with in_a_long_transaction(database, "INSERT INTO notes.notes VALUES ('held')"):
            migrating = asyncio.create_task(apply(database, notes))
            await until(partial(seen, watcher, WAITS, "%CREATE INDEX CONCURRENTLY%"), why="the index waits")
            await watcher.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONC%'"
            )
            with pytest.raises(MigrationFailed, match="connection was closed"):
                await migrating
        assert await watcher.fetchval(INDEXES) == [False]

        assert await apply(database, notes) == ["0002_index.sql"]
        assert await watcher.fetchval(INDEXES) == [True]


async def test_an_index_that_is_there_already_is_kept(database: Database, notes: Path):
    """A run may be killed after the index is made, and before that is written down."""
    (notes / "0002_index.sql").write_text(INDEX.format(""))

    async with connected(database) as conn:
        await conn.execute("CREATE INDEX notes_by_id ON notes.notes (id)")
        made = await conn.fetchval("SELECT 'notes.notes_by_id'::regclass::oid")

        assert await apply(database, notes) == ["0002_index.sql"]
        assert await conn.fetchval("SELECT 'notes.notes_by_id'::regclass::oid") == made


async def test_an_index_that_cannot_be_made_is_named_and_made_later(database: Database, notes: Path):
    (notes / "0002_index.sql").write_text(INDEX.format("UNIQUE "))

    async with connected(database) as conn:
        await conn.execute("INSERT INTO notes.notes VALUES ('twice'), ('twice')")
        with pytest.raises(MigrationFailed, match=r"(?s)0002_index.sql:2: .*goes on with this statement"):
            await apply(database, notes)
        await conn.execute("DELETE FROM notes.notes")

        assert await apply(database, notes) == ["0002_index.sql"]
        assert await conn.fetchval(INDEXES) == [True]


async def test_migrators_at_once_make_an_index_once_without_a_deadlock(database: Database, notes: Path):
    (notes / "0002_index.sql").write_text(INDEX.format(""))

    applied = await asyncio.gather(*(apply(database, notes) for _ in range(4)))

    assert sorted(applied) == [[], [], [], ["0002_index.sql"]]


PARTS = """-- migrate:up
CREATE TABLE parts (id int, day int) PARTITION BY LIST (day);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
-- migrate:down
"""
OF_PARTS = """-- migrate:up transaction:false
CREATE INDEX CONCURRENTLY parts_by_id ON parts (id) WHERE id > 0;
-- migrate:down
"""
VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'notes.parts_by_id'::regclass"
INDEXED = "SELECT count(*) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid WHERE c.relname LIKE 'parts\\__'"


async def test_each_partition_is_indexed_while_others_write(database: Database, notes: Path):
    (notes / "0002_parts.sql").write_text(PARTS)
    await apply(database, notes)
    (notes / "0003_index.sql").write_text(OF_PARTS)

    async with connected(database) as writer, connected(database) as watcher:
        async with in_a_long_transaction(database, "INSERT INTO notes.parts_2 VALUES (1, 2)"):
            migrating = asyncio.create_task(apply(database, notes))
            await until(partial(seen, watcher, WAITS, "%CREATE INDEX CONCURRENTLY%"), why="a partition's index waits")
            for n in range(WRITES):
                async with asyncio.timeout(30):
                    await writer.execute("INSERT INTO notes.parts VALUES ($1, $2)", n, n % 2 + 1)
            assert await watcher.fetchval(VALID) is False

        assert await migrating == ["0003_index.sql"]
        await writer.execute("CREATE TABLE notes.parts_3 PARTITION OF notes.parts FOR VALUES IN (3)")
        assert (await watcher.fetchval(VALID), await watcher.fetchval(INDEXED)) == (True, 3)
        (notes / "0004_drop.sql").write_text(
            OF_PARTS.replace("CREATE INDEX", "DROP INDEX").replace(
                "parts_by_id ON parts (id) WHERE id > 0", "IF EXISTS parts_by_id"
            )
        )
        assert await apply(database, notes) == ["0004_drop.sql"]
        assert await watcher.fetchval(INDEXED) == 0
