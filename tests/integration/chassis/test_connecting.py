"""Connecting: wait for a bus that starts, say plainly what is wrong, never hang."""

import asyncio

import nkeys
import pytest

from wayline.chassis import Bus, BusSettings
from wayline.contracts.errors import Bug, Reject, Unavailable
from wayline.embedded import free_port, minimal_config


async def test_an_unreachable_bus_is_reported_with_address_and_variable():
    url = f"nats://127.0.0.1:{free_port()}"

    with pytest.raises(Unavailable, match=rf"{url}.*WAYLINE_NATS_URL"):
        await Bus.connect(BusSettings(nats_url=url, connect_wait_s=0.3), service="router")


async def test_a_bus_that_starts_late_is_waited_for(nats_factory):
    port = free_port()
    settings = BusSettings(nats_url=f"nats://127.0.0.1:{port}", connect_wait_s=60)
    connecting = asyncio.create_task(Bus.connect(settings, service="router", exit_when_closed=False))

    await nats_factory(port=port)

    bus = await asyncio.wait_for(connecting, 60)
    assert bus.nc.is_connected
    await bus.close()


async def test_a_server_that_answers_no_longer_is_reported_in_plain_words(nats_factory):
    server = await nats_factory()
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="router", exit_when_closed=False)
    server.pause()

    with pytest.raises(Unavailable, match=r"no answer to a ping within 0\.2 s"):
        await bus.settled(within_s=0.2)

    server.resume()
    await bus.settled()
    await bus.close()


async def test_one_server_of_a_cluster_that_is_up_is_enough(nats_factory):
    server = await nats_factory()
    url = f"nats://127.0.0.1:{free_port()},{server.url}"

    bus = await Bus.connect(BusSettings(nats_url=url, connect_wait_s=60), service="router", exit_when_closed=False)

    assert bus.nc.is_connected
    await bus.close()


async def test_what_was_denied_is_tried_again_over_a_new_connection(nats_factory, tmp_path):
    store_dir = tmp_path / "js"
    denying = minimal_config(store_dir) + "\nauthorization: { users: [ { user: a, password: b, "
    denying += 'permissions: { publish: { deny: "kept.>" } } } ] }\nno_auth_user: a\n'
    server = await nats_factory(config=denying)
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="router", exit_when_closed=False)
    await bus.js.add_stream(name="KEPT", subjects=["kept.>"])
    with pytest.raises(Bug, match="may not publish"):
        await bus.store("kept.a", b"", {})
    back = asyncio.Event()
    bus.reconnected.append(back.set)
    await server.kill()
    server.config = minimal_config(store_dir)
    await server.start()
    await asyncio.wait_for(back.wait(), 30)

    assert (await bus.store("kept.a", b"", {})).seq == 1
    await bus.close()


async def test_closing_does_not_wait_for_readers_that_are_gone(nats_factory):
    server = await nats_factory()
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="router", exit_when_closed=False)
    await bus.nc.subscribe("unread")
    await bus.nc.publish("unread", b"")
    await bus.settled()

    leaving = asyncio.create_task(bus.close())
    await asyncio.wait({leaving}, timeout=20)

    assert leaving.done()


async def test_a_server_that_found_us_slow_does_not_doubt_our_credentials(nats_factory):
    port, told = free_port(), asyncio.Event()

    async def be_impatient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"impatient","max_payload":1048576}\r\n')
        if await reader.readline():
            writer.write(b"-ERR 'Authentication Timeout'\r\n")
            told.set()
        writer.close()

    impatient = await asyncio.start_server(be_impatient, "127.0.0.1", port)
    settings = BusSettings(nats_url=f"nats://127.0.0.1:{port}", connect_wait_s=60)
    connecting = asyncio.create_task(Bus.connect(settings, service="router", exit_when_closed=False))
    await asyncio.wait_for(told.wait(), 30)
    impatient.close()
    await impatient.wait_closed()
    await nats_factory(port=port)

    bus = await asyncio.wait_for(connecting, 60)

    assert bus.nc.is_connected
    await bus.close()


async def test_credentials_that_the_bus_does_not_know_are_refused_at_once(nats_factory, tmp_path):
    known = nkeys.from_seed(nkeys.encode_seed(b"k" * 32, nkeys.PREFIX_BYTE_USER)).public_key.decode()
    config = minimal_config(tmp_path / "js") + f'\nauthorization: {{ users: [ {{ nkey: "{known}" }} ] }}\n'
    server = await nats_factory(config=config)
    stranger = nkeys.encode_seed(b"s" * 32, nkeys.PREFIX_BYTE_USER).decode()
    settings = BusSettings(nats_url=server.url, nats_seed=stranger, connect_wait_s=600)

    with pytest.raises(Reject, match="does not accept the credentials of router"):
        await asyncio.wait_for(Bus.connect(settings, service="router"), 60)
