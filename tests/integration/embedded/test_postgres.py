"""The Postgres of `wayline up`: made once, kept, reached with a password only."""

import socket
import stat
from pathlib import Path

import asyncpg
import pytest

from wayline.embedded import DataDirForeign, DataDirTaken, PortTaken, PostgresServer
from wayline.testkit.fixtures import PostgresFactory


async def ask(server: PostgresServer, question: str, *, host: str | None = None) -> object:
    conn = await asyncpg.connect(server.dsn(), host=host, port=server.port)
    try:
        return await conn.fetchval(question)
    finally:
        await conn.close()


async def test_rows_survive_a_restart_and_a_crash(postgres_factory: PostgresFactory):
    server = await postgres_factory()
    await ask(server, "CREATE TABLE kept AS SELECT 1 AS n")
    port = server.port

    await server.restart()
    await ask(server, "INSERT INTO kept VALUES (2)")
    await server.kill()
    await server.start()

    assert await ask(server, "SELECT sum(n) FROM kept") == 3
    assert server.port == port


async def test_a_stale_pid_file_of_a_reused_pid_is_no_obstacle(
    postgres_factory: PostgresFactory, postgres_server: PostgresServer
):
    server = await postgres_factory()
    await server.kill()
    pid_file = server.data / "postmaster.pid"
    left_behind = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(postgres_server.pid), *left_behind[1:]]) + "\n")

    await server.start()

    assert await ask(server, "SELECT 1") == 1


async def test_a_second_server_on_the_same_data_is_refused(postgres_factory: PostgresFactory):
    first = await postgres_factory()

    with pytest.raises(DataDirTaken):
        await PostgresServer(first.data_dir).start()

    assert await ask(first, "SELECT 1") == 1


async def test_a_postgres_started_by_hand_on_the_same_data_is_found(postgres_factory: PostgresFactory):
    first = await postgres_factory()
    (first.data_dir / "lock").unlink()

    with pytest.raises(DataDirTaken, match=f"the running Postgres {first.pid}"):
        await PostgresServer(first.data_dir).start()


async def test_the_data_of_another_version_is_refused(postgres_factory: PostgresFactory):
    server = await postgres_factory()
    await server.stop()
    (server.data / "PG_VERSION").write_text("17\n")

    with pytest.raises(DataDirForeign, match="holds the data of postgres 17, not of postgres 18"):
        await server.start()


async def test_an_interrupted_first_start_leaves_no_half_made_data(server_dir: Path):
    home = server_dir / "interrupted"
    (home / "data.new").mkdir(parents=True)
    (home / "data.new" / "PG_VERSION").write_text("18\n")

    async with PostgresServer(home) as server:
        assert await ask(server, "SELECT 1") == 1


async def test_a_taken_port_is_said_with_the_variable_that_changes_it(server_dir: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = PostgresServer(server_dir / "taken", port=other.getsockname()[1], port_variable="THE_VARIABLE")

        with pytest.raises(PortTaken, match=r"Postgres.*Set THE_VARIABLE"):
            await server.start()


async def test_a_wrong_password_is_refused(postgres_server: PostgresServer):
    for host in ("127.0.0.1", str(postgres_server.socket_dir)):
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(host=host, port=postgres_server.port, user="postgres", password="guess")

    assert stat.S_IMODE((postgres_server.data_dir / "password").stat().st_mode) == 0o600


async def test_the_socket_serves_too(postgres_server: PostgresServer):
    assert await ask(postgres_server, "SELECT inet_server_addr()", host=str(postgres_server.socket_dir)) is None


async def test_the_server_is_version_18_on_loopback_with_vectors(postgres_server: PostgresServer):
    assert await ask(postgres_server, "SHOW listen_addresses") == "127.0.0.1"
    assert await ask(postgres_server, "SHOW jit") == "off"
    assert await ask(postgres_server, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1
    assert str(await ask(postgres_server, "SHOW server_version")).startswith("18")


async def test_words_beyond_ascii_are_folded_the_same_on_every_machine(postgres_server: PostgresServer):
    words = await ask(postgres_server, "SELECT to_tsvector('simple', 'GRÖSSE Été')::text")

    assert words == "'grösse':1 'été':2"


async def test_a_paused_server_answers_nothing_until_it_is_resumed(postgres_factory: PostgresFactory):
    server = await postgres_factory()
    conn = await asyncpg.connect(server.dsn())

    server.pause()
    with pytest.raises(TimeoutError):
        await conn.fetchval("SELECT 1", timeout=0.5)
    server.resume()

    assert await ask(server, "SELECT 1") == 1
    await conn.close()
