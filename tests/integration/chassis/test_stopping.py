"""A service that stops goes all the way, whatever becomes of its parts and its bus."""

import asyncio
from typing import Any

import pytest

from wayline.chassis import Bus, BusSettings, Part, Service, asks
from wayline.contracts.agents import Agent, AgentConfig, GetAgent
from wayline.telemetry import BusExporter, Telemetry
from wayline.testkit import until


class Thing:
    """A part that ends as it is told."""

    def __init__(self, ending: BaseException | None = None) -> None:
        self._ending = ending
        self.may_end = asyncio.Event()
        self.ended = False

    async def start(self) -> None:
        pass

    async def stop(self, grace_s: float) -> None:
        if self._ending is not None:
            raise self._ending
        await self.may_end.wait()
        self.ended = True


@pytest.fixture
async def server(nats_factory):
    return await nats_factory()


async def running(server, *parts: Part, closed: list[str], answer: Any = None) -> Service:
    settings = BusSettings(nats_url=server.url)
    bus = await Bus.connect(settings, service="router", exit_when_closed=False)
    exporter = BusExporter("router")

    async def close() -> None:
        closed.append("tables")

    bound = [asks(GetAgent, answer)] if answer else []
    service = Service(
        "router", settings, bus, Telemetry("router", exporter), exporter, parts=parts, asks=bound, close=close
    )
    await service.start()
    return service


async def test_a_part_that_cannot_stop_takes_nothing_from_the_others(server):
    patient, closed = Thing(), []
    service = await running(server, Thing(ValueError("broken")), patient, closed=closed)

    stopping = asyncio.create_task(service.stop(5))
    await asyncio.sleep(0)
    patient.may_end.set()
    await stopping

    assert patient.ended
    assert closed == ["tables"]
    assert service.bus.nc.is_closed


async def test_a_service_stops_while_the_bus_is_away(server):
    begun, may_end, done, closed = asyncio.Event(), asyncio.Event(), [], []

    async def on_get(asked: GetAgent) -> Agent:
        begun.set()
        await may_end.wait()
        done.append(asked.name)
        return Agent(name=asked.name, version=1, config=AgentConfig())

    service = await running(server, closed=closed, answer=on_get)
    client = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
    asking = asyncio.create_task(client.ask(GetAgent(tenant="default", name="a"), Agent))
    await asyncio.wait_for(begun.wait(), 10)
    await server.kill()
    await until(lambda: not service.bus.nc.is_connected, why="the service knows that the bus is away")

    stopping = asyncio.create_task(service.stop(5))
    await asyncio.sleep(0)
    may_end.set()
    await stopping

    assert done == ["a"]
    assert closed == ["tables"]
    asking.cancel()
    await client.close()
