"""The NATS of `wayline up`: its own directory, its own port, its messages kept."""

import socket
import stat
from pathlib import Path

import nats
import pytest
from nats.errors import TimeoutError as NoAnswer

from wayline.embedded import DataDirForeign, DataDirTaken, NatsServer, PortTaken, StartFailed, free_port, minimal_config
from wayline.testkit.fixtures import NatsFactory, PostgresFactory


async def test_a_message_survives_a_restart_and_a_crash(nats_factory: NatsFactory):
    server = await nats_factory(sync_interval="always")
    client = await nats.connect(server.url, reconnect_time_wait=0.01, max_reconnect_attempts=-1)
    await client.jetstream().add_stream(name="KEPT", subjects=["kept"])
    await client.jetstream().publish("kept", b"one")

    await server.restart()
    await client.jetstream().publish("kept", b"two")
    await server.kill()
    await server.start()

    assert (await client.jetstream().stream_info("KEPT")).state.messages == 2
    await client.close()


async def test_a_paused_server_answers_nothing_until_it_is_resumed(nats_factory: NatsFactory):
    server = await nats_factory()
    client = await nats.connect(server.url)

    server.pause()
    with pytest.raises(NoAnswer):
        await client.request("$JS.API.INFO", timeout=0.5)
    server.resume()

    assert (await client.request("$JS.API.INFO")).data
    await client.close()


async def test_a_taken_port_is_said_with_the_variable_that_changes_it(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = NatsServer(tmp_path, config=minimal_config(tmp_path), port=port, port_variable="WAYLINE_NATS_PORT")

        with pytest.raises(PortTaken, match=f"{port}.*NATS.*Set WAYLINE_NATS_PORT"):
            await server.start()


async def test_a_second_server_on_the_same_data_is_refused_at_once(nats_factory: NatsFactory):
    first = await nats_factory()
    second = NatsServer(first.data_dir, config=first.config)

    with pytest.raises(DataDirTaken, match="in use by the running process"):
        await second.start()

    assert first.running
    assert not second.running


async def test_the_data_of_another_server_is_refused(nats_factory: NatsFactory):
    server = await nats_factory()
    await server.stop()
    (server.data_dir / "server").write_text("postgres 18\n")

    with pytest.raises(DataDirForeign, match="holds the data of postgres 18, not of nats 2"):
        await server.start()


async def test_a_bad_configuration_is_shown_with_its_line(tmp_path: Path):
    server = NatsServer(tmp_path, config="jetstream {\n  no_such_setting: 1\n}")

    with pytest.raises(StartFailed, match=r'nats.conf:2:.*"no_such_setting"'):
        await server.start()
    assert not server.running


async def test_the_configuration_is_readable_by_its_owner_only(nats_factory: NatsFactory):
    server = await nats_factory()

    assert stat.S_IMODE((server.data_dir / "nats.conf").stat().st_mode) == 0o600


async def test_a_log_is_readable_by_its_owner_only(nats_factory: NatsFactory, postgres_factory: PostgresFactory):
    nats_server = await nats_factory()
    nats_server.log.chmod(0o644)
    await nats_server.restart()

    for server in (nats_server, await postgres_factory()):
        assert stat.S_IMODE(server.log.stat().st_mode) == 0o600


async def test_the_monitoring_port_serves_when_asked_for(tmp_path: Path):
    monitor = free_port()
    server = NatsServer(tmp_path, config=minimal_config(tmp_path / "jetstream", monitor_port=monitor))

    async with server:
        with socket.create_connection(("127.0.0.1", monitor)) as conn:
            conn.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert b"200 OK" in conn.recv(1024)


async def test_stopping_twice_or_before_the_start_does_nothing(tmp_path: Path):
    server = NatsServer(tmp_path, config=minimal_config(tmp_path / "jetstream"))

    await server.stop()
    await server.start()
    await server.stop()
    await server.stop()

    assert not server.running
