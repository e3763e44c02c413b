"""Requests on the bus: one answer, or one typed error; never a silence."""

import asyncio

import pytest

from wayline.chassis import Bus, BusSettings, Service, asks, responder
from wayline.contracts.agents import Agent, AgentConfig, GetAgent
from wayline.contracts.errors import NotFound, Refused, Retry, Unavailable
from wayline.telemetry import BusExporter, Telemetry


async def answering(bus: Bus, handle) -> Service:
    settings = BusSettings(nats_url=bus.nc.connected_url.geturl())
    own = await Bus.connect(settings, service="router", exit_when_closed=False)
    exporter = BusExporter("router")
    service = Service("router", settings, own, Telemetry("router", exporter), exporter, asks=[asks(GetAgent, handle)])
    await service.start()
    return service


async def test_an_answer_of_any_size_comes_back(bus):
    async def on_get(asked):
        return Agent(name=asked.name, version=1, config=AgentConfig(instructions="x" * 90_000, description="d"))

    service = await answering(bus, on_get)
    monster = "y" * 600_000

    assert (await bus.ask(GetAgent(tenant="default", name="a"), Agent)).config.instructions == "x" * 90_000
    with pytest.raises(Refused):
        await bus.ask(GetAgent(tenant="default", name=monster), Agent)
    await service.stop(1)


@pytest.mark.parametrize(
    ("raised", "expected", "says"),
    [
        (NotFound("agent", "a"), Refused, "no agent 'a'"),
        (Retry("the database is away", after_s=3), Retry, "the database is away"),
        (ZeroDivisionError("secret detail"), Refused, "router failed: ZeroDivisionError"),
    ],
)
async def test_an_error_is_an_answer_and_its_class_says_who_may_ask_again(bus, raised, expected, says):
    async def on_get(_):
        raise raised

    service = await answering(bus, on_get)

    with pytest.raises(expected) as caught:
        await bus.ask(GetAgent(tenant="default", name="a"), Agent)

    assert says in str(caught.value)
    assert "secret" not in str(caught.value)
    await service.stop(1)


async def test_who_asks_more_than_can_wait_is_told_to_ask_again(bus, monkeypatch):
    monkeypatch.setattr(responder, "HELD_MAX_BYTES", 2 * responder.REQUEST_BYTES)
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def on_get(asked):
        begun.set()
        await go_on.wait()
        return Agent(name=asked.name, version=1, config=AgentConfig())

    service = await answering(bus, on_get)
    first = asyncio.create_task(bus.ask(GetAgent(tenant="default", name="a"), Agent))
    await begun.wait()

    with pytest.raises(Retry, match="more requests waiting"):
        await bus.ask(GetAgent(tenant="default", name="b"), Agent)
    go_on.set()

    assert (await first).name == "a"
    assert (await bus.ask(GetAgent(tenant="default", name="c"), Agent)).name == "c"
    await service.stop(1)


async def test_nobody_there_is_told_apart_from_a_refusal(bus):
    with pytest.raises(Unavailable, match=r"agents.get does not answer"):
        await bus.ask(GetAgent(tenant="default", name="a"), Agent)


async def test_a_bad_request_is_answered_with_the_field_that_is_wrong(bus):
    async def on_get(_):
        raise AssertionError("never reached")

    service = await answering(bus, on_get)

    reply = await bus.nc.request("agents.get.default", b'{"nom": 1}', timeout=5)

    assert reply.headers["Wayline-Error"] == "invalid_message"
    assert b"name: Field required" in reply.data
    await service.stop(1)
