"""The check of a store is a write: a Postgres that answers and cannot store is not well."""

from __future__ import annotations

import secrets
from pathlib import Path

import asyncpg
import pytest

from wayline.embedded import PostgresServer
from wayline.store import PostgresUnavailable, Store, migrate
from wayline.testkit import Database, until
from wayline.testkit.disks import small_disk
from wayline.testkit.fixtures import FAST

MIGRATION = "-- migrate:up\nCREATE TABLE notes (body text);\n-- migrate:down\nDROP TABLE notes;\n"


async def test_a_full_disk_is_named_and_passes_when_there_is_room(server_dir: Path, tmp_path: Path):
    (tmp_path / "0001_notes.sql").write_text(MIGRATION)
    with small_disk(server_dir / f"disk-{secrets.token_hex(4)}", megabytes=128) as disk:
        server = PostgresServer(disk.path / "postgres", settings=FAST)
        await server.start()
        try:
            await migrate(server.dsn(), schema="n", role="n_service", password="p", directory=tmp_path)
            store = await Store.connect(server.dsn(user="n_service", password="p"), schema="n", max_size=2)
            await store.check()

            disk.fill()
            with pytest.raises(PostgresUnavailable) as full:
                await store.check()
            with pytest.raises(PostgresUnavailable):
                await store.execute("acme", "INSERT INTO notes SELECT repeat('x', 900) FROM generate_series(1, 1000)")
            disk.free()

            async def well() -> bool:
                await store.check()
                return True

            assert (full.value.sqlstate, full.value.why) == ("53100", "its disk is full")
            await until(well, why="it writes again")
            await store.close()
        finally:
            await server.stop()


async def test_a_database_that_may_only_be_read_is_not_well(database: Database, tmp_path: Path):
    (tmp_path / "0001_notes.sql").write_text(MIGRATION)
    await migrate(database.dsn, schema="n", role="n_reader", password="p", directory=tmp_path)
    admin = await asyncpg.connect(database.dsn)
    await admin.execute(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    await admin.close()
    store = await Store.connect(database.as_role("n_reader", "p"), schema="n")

    with pytest.raises(PostgresUnavailable, match="it is read-only"):
        await store.check()

    await store.close()


async def test_checks_leave_nothing_but_one_row(database: Database, tmp_path: Path):
    (tmp_path / "0001_notes.sql").write_text(MIGRATION)
    await migrate(database.dsn, schema="n", role="n_checker", password="p", directory=tmp_path)
    store = await Store.connect(database.as_role("n_checker", "p"), schema="n", max_size=1)

    for _ in range(3):
        await store.check()

    assert await store.fetchval("acme", "SELECT count(*) FROM probe_writes") == 1
    assert await store.fetchval("acme", "SELECT pg_relation_size('pg_temp.probe_writes_page')") == 0
    await store.close()
