"""Readiness is a write that works: a bus whose disk is full is connected, answers, and stores nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from nats.js.api import StreamState

from wayline.chassis import Bus, BusSettings, Service
from wayline.chassis.connection import bus as bus_module
from wayline.chassis.declare import declare
from wayline.chassis.stream_limits import Limits
from wayline.contracts.errors import Unavailable
from wayline.embedded import NatsServer, minimal_config
from wayline.standalone.servers import watch
from wayline.telemetry import BusExporter, Telemetry
from wayline.testkit import until
from wayline.testkit.disks import SmallDisk, small_disk

MIB = 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path):
    with small_disk(tmp_path / "disk", megabytes=24) as disk:
        yield disk


@pytest.fixture
async def server(tmp_path: Path, disk: SmallDisk) -> AsyncIterator[NatsServer]:
    # Declared streams reserve more than there is; what is stored is what counts.
    config = minimal_config(disk.path / "js")
    server = NatsServer(disk.path / "nats", config=config)
    await server.start()
    yield server
    await server.kill()


@pytest.fixture
async def bus(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bus]:
    monkeypatch.setattr(bus_module, "PUBLISH_TIMEOUT_S", 0.3)
    monkeypatch.setattr(bus_module, "PROBE_TIMEOUT_S", 0.5)
    monkeypatch.setattr(bus_module, "UNACKED_AFTER_S", 0.5)
    bus = await Bus.connect(BusSettings(nats_url=server.url), service="gateway", exit_when_closed=False)
    async for _ in declare(bus.js, Limits()):
        pass
    yield bus
    await bus.close()


async def well(bus: Bus) -> bool:
    try:
        await bus.check()
    except Unavailable:
        return False
    return True


async def test_a_bus_with_a_full_disk_is_unready_until_restarted(
    server: NatsServer, disk: SmallDisk, bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("wayline.chassis.service.WELL_FRESH_S", 0)
    monkeypatch.setattr("wayline.chassis.service.ILL_FRESH_S", 0)
    exporter = BusExporter("gateway")
    service = Service("gateway", BusSettings(), bus, Telemetry("gateway", exporter), exporter)
    await bus.store("events.acme.j1", b"before", {})
    assert await service.ready() == {"bus": "ok"}

    disk.fill()

    assert "stores nothing" in (await service.ready())["bus"]
    assert bus.nc.is_connected
    disk.free()
    assert "stores nothing" in (await service.ready())["bus"]
    await server.restart()
    await until(lambda: well(bus), why="it stores again")
    assert await service.ready() == {"bus": "ok"}
    await bus.store("events.acme.j2", b"after", {})
    assert (await bus.js.stream_info("EVENTS")).state.messages == 2


async def test_a_stream_without_acks_makes_the_bus_unready(disk: SmallDisk, bus: Bus):
    disk.fill()
    large = bytes(MIB // 2)

    with pytest.raises(Unavailable, match=r"jobs\.run\.batch\.acme gets no ack, its disk may be full"):
        await bus.store("jobs.run.batch.acme", large, {}, within_s=1)

    assert bus.stuck == "jobs"
    with pytest.raises(Unavailable, match=r"jobs\.> gets no ack"):
        await bus.check()
    tries = asyncio.create_task(bus.store("jobs.run.batch.acme", large, {}, within_s=600))
    with pytest.raises(Unavailable):
        # Far less than the time that it is tried otherwise.
        await asyncio.wait_for(tries, 60)


async def test_many_probes_are_one_write(bus: Bus):
    exporter = BusExporter("gateway")
    asked: list[int] = []

    async def check() -> None:
        asked.append(1)

    needs: dict[str, Any] = {"postgres": check}
    service = Service("gateway", BusSettings(), bus, Telemetry("gateway", exporter), exporter, needs=needs)

    states = await asyncio.gather(*(service.ready() for _ in range(50)))

    assert states == [{"bus": "ok", "postgres": "ok"}] * 50
    assert len(asked) == 1
    assert (await bus.js.stream_info("PROBES")).state.messages == 1


async def stored(bus: Bus) -> StreamState | None:
    """Return what EVENTS holds; None: the bus does not answer now."""
    try:
        return (await bus.js.stream_info("EVENTS")).state
    except bus_module.AWAY:
        return None


async def test_up_restarts_a_bus_that_stores_nothing_once_there_is_room(
    server: NatsServer, disk: SmallDisk, bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watch, "STORES_EVERY_S", 0.05)
    monkeypatch.setattr(watch, "ROOM_MIN_BYTES", 4 * MIB)
    needs: list[str] = []
    watching = asyncio.create_task(watch.ServerWatch([server], print_line=needs.append, check=bus.check).run())
    first = server.pid
    try:
        await bus.store("events.acme.j1", b"before", {})
        disk.fill()
        await until(lambda: needs, why="it is told that the disk is full")
        assert ("is full" in needs[0], server.pid) == (True, first)

        disk.free()
        await until(lambda: len(needs) >= 3, why="the bus was started again")
        await until(lambda: well(bus), why="it stores again")
    finally:
        watching.cancel()
        await asyncio.wait({watching})

    assert "though its disk has room" in needs[1] and "is back" in needs[2]
    assert server.pid != first
    # Asked this often it may have been started a second time.
    kept = await until(lambda: stored(bus), why="the bus tells what it kept")
    assert kept.messages == 1
