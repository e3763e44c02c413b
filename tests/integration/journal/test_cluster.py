"""The log of one job on three servers: a record that is still being copied is neither lost nor somebody else's."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nats import errors as nats_errors
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

from wayline.chassis import Bus, BusSettings
from wayline.chassis.connection import bus as chassis_bus
from wayline.embedded import NatsServer, free_port
from wayline.journal import Fenced
from wayline.testkit import until
from wayline.testkit.fixtures import NatsFactory

from .test_log import asked, begun


async def three_servers(nats_factory: NatsFactory, tmp_path: Path) -> dict[str, NatsServer]:
    """A cluster that agrees on the stream of logs, by name."""
    ports = [free_port() for _ in range(3)]
    routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
    starting = {
        f"n{number}": nats_factory(
            config=f"server_name: n{number}\n"
            f"jetstream {{ store_dir: {json.dumps(str(tmp_path / f'n{number}'))} }}\n"
            f'cluster {{ name: c, listen: "127.0.0.1:{port}", routes: [{routes}] }}\n'
        )
        for number, port in enumerate(ports)
    }
    return dict(zip(starting, await asyncio.gather(*starting.values()), strict=True))


async def connected(server: NatsServer) -> Bus:
    return await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)


async def test_an_append_that_is_still_being_copied_is_waited_for(
    nats_factory: NatsFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(chassis_bus, "PUBLISH_TIMEOUT_S", 0.2)
    servers = await three_servers(nats_factory, tmp_path)
    any_bus = await connected(servers["n0"])

    async def leader() -> str | None:
        with suppress(nats_errors.Error):
            stream = StreamConfig("EVENTS", subjects=["events.*.*"], num_replicas=3, allow_direct=True)
            made = await any_bus.js.add_stream(stream)
            return made.cluster and made.cluster.leader
        return None

    leading = servers[await until(leader, why="the servers agree on a stream")]
    bus = await connected(leading)
    log, head = await begun(bus)
    tries: list[object] = []
    request = bus.request

    async def counted(*args: Any, **more: Any) -> Msg:
        reply = await request(*args, **more)
        tries.append(reply.data)
        return reply

    monkeypatch.setattr(bus, "request", counted)
    for server in servers.values():
        if server is not leading:
            server.pause()
    ours = asyncio.create_task(log.append([asked(2, "ours")], head))
    theirs = asyncio.create_task(log.append([asked(2, "theirs")], head))
    await until(lambda: len(tries) > 4, why="both were told again and again that a record is on its way")
    for server in servers.values():
        if server is not leading:
            server.resume()

    with pytest.raises(Fenced):
        await theirs
    assert (await ours).seq == 2
    assert [event.reason async for event in log.read(after_seq=1)] == ["ours"]
    await bus.close()
    await any_bus.close()
