"""A service that cannot reach its database says what to do."""

import asyncio
import socket
from pathlib import Path

import asyncpg
import pytest

from wayline.embedded import free_port
from wayline.store import (
    PostgresRefused,
    PostgresUnavailable,
    SchemaMissing,
    Store,
    UnknownQuery,
    migrate,
    several_hosts,
)
from wayline.testkit import Database
from wayline.testkit.fixtures import PostgresFactory

MIGRATION = "-- migrate:up\nCREATE TABLE notes (tenant text, embedding vector(2));\n-- migrate:down\n"


async def test_a_postgres_that_is_away_is_said_with_what_to_do():
    port = free_port()

    with pytest.raises(PostgresUnavailable, match=rf"did not answer at 127.0.0.1:{port}/db .*WAYLINE_POSTGRES_DSN"):
        await Store.connect(f"postgresql://service:secret@127.0.0.1:{port}/db", schema="notes")


async def test_a_service_that_was_asked_to_wait_starts_when_postgres_does(
    postgres_factory: PostgresFactory, tmp_path: Path
):
    (tmp_path / "0001_notes.sql").write_text(MIGRATION)
    server = await postgres_factory()
    await migrate(server.dsn(), schema="w", role="w_service", password="p", directory=tmp_path, vector=True)
    await server.stop()

    dsn = server.dsn(user="w_service", password="p")
    connecting = asyncio.create_task(Store.connect(dsn, schema="w", wait_s=30))
    await server.start()
    store = await connecting

    assert await store.fetchval("acme", "SELECT 1") == 1
    await store.close()


async def test_an_absent_postgres_differs_from_a_wrong_statement(postgres_factory: PostgresFactory, tmp_path: Path):
    (tmp_path / "0001_notes.sql").write_text(MIGRATION)
    server = await postgres_factory()
    await migrate(server.dsn(), schema="w", role="w_service", password="p", directory=tmp_path, vector=True)
    store = await Store.connect(server.dsn(user="w_service", password="p"), schema="w")

    with pytest.raises(PostgresUnavailable):
        async with store.tenant("acme") as conn:
            await conn.execute("INSERT INTO notes VALUES ('acme')")
            await server.kill()
            await conn.execute("INSERT INTO notes VALUES ('acme')")
    with pytest.raises(PostgresUnavailable):
        await store.fetch("acme", "SELECT * FROM notes")
    await server.start()
    with pytest.raises(asyncpg.UndefinedTableError):
        await store.fetch("acme", "SELECT * FROM notebooks")

    assert await store.fetch("acme", "SELECT * FROM notes") == []
    await store.close()


async def test_the_pool_recovers_after_a_crash_of_postgres(postgres_factory: PostgresFactory, tmp_path: Path):
    (tmp_path / "0001_notes.sql").write_text(MIGRATION)
    server = await postgres_factory()
    await migrate(server.dsn(), schema="w", role="w_service", password="p", directory=tmp_path, vector=True)
    store = await Store.connect(server.dsn(user="w_service", password="p"), schema="w", max_size=2)
    await store.execute("acme", "INSERT INTO notes VALUES ('acme')")

    await server.kill()
    await server.start()

    assert await store.fetchval("acme", "SELECT count(*) FROM notes") == 1
    await store.close()


async def test_a_wrong_password_and_a_missing_database_are_not_waited_for(database: Database):
    with pytest.raises(PostgresRefused, match="password authentication failed"):
        await Store.connect(database.as_role("postgres", "guess"), schema="notes", wait_s=60)
    with pytest.raises(PostgresRefused, match="does not exist"):
        await Store.connect(database.server.dsn(database="nowhere"), schema="notes", wait_s=60)


async def test_a_database_that_was_never_migrated_is_said_plainly(database: Database):
    with pytest.raises(SchemaMissing, match="run `wayline migrate` first"):
        await Store.connect(database.dsn, schema="notes")


async def test_a_column_added_beside_a_service_makes_a_statement_come_again(database: Database, tmp_path: Path):
    (tmp_path / "0001_notes.sql").write_text(MIGRATION)
    await migrate(database.dsn, schema="w", role="w_service", password="p", directory=tmp_path, vector=True)
    store = await Store.connect(database.as_role("w_service", "p"), schema="w")
    read = "SELECT * FROM notes"
    await store.fetch("acme", read)

    (tmp_path / "0002_more.sql").write_text("-- migrate:up\nALTER TABLE notes ADD COLUMN more text;\n-- migrate:down\n")
    await migrate(database.dsn, schema="w", role="w_service", password="p", directory=tmp_path, vector=True)

    with pytest.raises(PostgresUnavailable, match="its tables have just been changed") as error:
        async with store.tenant("acme") as conn:
            await conn.fetch(read)
    assert error.value.after_s < 1
    assert await store.fetch("acme", read) == []
    await store.close()


async def test_named_queries_run_in_the_services_own_schema(database: Database, tmp_path: Path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "0001_notes.sql").write_text(MIGRATION)
    (tmp_path / "queries.sql").write_text(
        "-- name: insert_note\nINSERT INTO notes VALUES ($1, $2::text::vector)\n"
        "RETURNING embedding <-> '[0,0]' AS distance;\n"
    )
    dsn = database.as_role("w_service", "p")
    await migrate(database.dsn, schema="w", role="w_service", password="p", directory=tmp_path / "m", vector=True)
    store = await Store.connect(dsn, schema="w", queries=tmp_path / "queries.sql")

    row = await store.fetchrow("acme", store.sql.insert_note, "acme", "[3,4]")

    assert row is not None and row["distance"] == 5
    with pytest.raises(UnknownQuery, match="no query 'delete_note'; it has: insert_note"):
        store.sql.delete_note  # noqa: B018
    await store.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the kernel of this system has no such time-out")
async def test_a_connection_whose_server_is_gone_is_lost_soon(database: Database):
    conn = await several_hosts.connect_once(database.dsn)
    sock = conn._transport.get_extra_info("socket")

    found = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    listens = sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    await conn.close()

    assert (found, bool(listens)) == (several_hosts.GONE_AFTER_S * 1_000, True)


@pytest.mark.parametrize("how", ["silent", "closes"])
async def test_a_first_host_that_is_gone_is_passed_over(
    how: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(several_hosts, "CONNECT_WITHIN_S", 4)
    (tmp_path / "0001_notes.sql").write_text(MIGRATION)
    await migrate(database.dsn, schema="w", role="w_service", password="p", directory=tmp_path, vector=True)
    tried, over = 0, asyncio.Event()

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tried
        tried += 1
        if how == "silent":
            await over.wait()
        writer.close()

    gone = await asyncio.start_server(take, "127.0.0.1", 0)
    dsn = database.as_role("w_service", "p")
    host = dsn.partition("@")[2].partition("/")[0]
    first = f"127.0.0.1:{gone.sockets[0].getsockname()[1]}"
    dsn = dsn.replace(host, f"{first},{host}") + ("&" if "?" in dsn else "?") + "target_session_attrs=read-write"

    store = await Store.connect(dsn, schema="w")
    seen = tried
    # A second connection begins with the host that was found.
    async with store.system() as one, store.system() as two:
        assert [await one.fetchval("SELECT 1"), await two.fetchval("SELECT 1")] == [1, 1]

    assert (seen > 0, tried) == (True, seen)
    await store.close()
    over.set()
    gone.close()
