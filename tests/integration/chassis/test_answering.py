"""Requests on the bus: one answer, or one typed error; never a silence."""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from wayline.chassis import Bus, BusSettings, Service, asks
from wayline.chassis.connection import requests
from wayline.chassis.handling import responder
from wayline.chassis.topology import PAYLOADS, REPLIES, REPLIES_KEPT_S
from wayline.contracts.agents import Agent, AgentConfig, GetAgent
from wayline.contracts.errors import NotFound, Refused, Retry, Unavailable
from wayline.telemetry import BusExporter, Telemetry
from wayline.testkit import until
from wayline.testkit.cycles import ours, uncollected, whose
from wayline.testkit.walks import cases


async def answering(bus: Bus, handle, *, everyone: bool = False, slots: int = 64) -> Service:
    assert bus.nc.connected_url is not None
    settings = BusSettings(nats_url=bus.nc.connected_url.geturl())
    own = await Bus.connect(settings, service="router", exit_when_closed=False)
    exporter = BusExporter("router")
    bound = [asks(GetAgent, handle, everyone=everyone, slots=slots)]
    service = Service("router", settings, own, Telemetry("router", exporter), exporter, asks=bound)
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
    cases(
        [
            (NotFound("agent", "a"), Refused, "no agent 'a'"),
            (Retry("the database is away", after_s=3), Retry, "the database is away"),
            (ZeroDivisionError("secret detail"), Refused, "router failed: ZeroDivisionError"),
        ]
    ),
)
async def test_an_error_reply_keeps_its_class(bus, raised, expected, says):
    async def on_get(_):
        raise raised

    service = await answering(bus, on_get)

    with pytest.raises(expected) as caught:
        await bus.ask(GetAgent(tenant="default", name="a"), Agent)

    assert says in str(caught.value)
    assert "secret" not in str(caught.value)
    await service.stop(1)


async def test_requests_that_fail_leave_no_reference_cycles_of_ours(bus):
    async def on_get(_):
        raise Retry("the database is away")

    async def ask() -> None:
        with suppress(Retry):
            await bus.ask(GetAgent(tenant="default", name="a"), Agent)

    service = await answering(bus, on_get)
    await ask()

    with uncollected() as found:
        for _ in range(5):
            await ask()

    assert Counter(filter(ours, map(whose, found))) == {}
    await service.stop(1)


async def test_requests_beyond_the_waiting_limit_get_a_retry(bus, monkeypatch):
    monkeypatch.setattr(responder, "HELD_MAX_BYTES", 2 * responder.REQUEST_BYTES)
    go_on, begun = asyncio.Event(), asyncio.Event()

    async def on_get(asked):
        begun.set()
        await go_on.wait()
        return Agent(name=asked.name, version=1, config=AgentConfig())

    service = await answering(bus, on_get)
    first = asyncio.create_task(bus.ask(GetAgent(tenant="default", name="a"), Agent))
    await begun.wait()

    with pytest.raises(Retry, match="too many requests waiting"):
        await bus.ask(GetAgent(tenant="default", name="b"), Agent)
    go_on.set()

    assert (await first).name == "a"
    assert (await bus.ask(GetAgent(tenant="default", name="c"), Agent)).name == "c"
    await service.stop(1)


async def test_requests_of_one_tenant_that_hang_leave_slots_to_others(bus):
    hanging, begun = asyncio.Event(), list[str]()

    async def on_get(asked):
        if asked.tenant == "slow":
            begun.append(asked.name)
            await hanging.wait()
        return Agent(name=asked.name, version=1, config=AgentConfig())

    service = await answering(bus, on_get, slots=4)
    slow = [asyncio.create_task(bus.ask(GetAgent(tenant="slow", name=str(n)), Agent, timeout_s=60)) for n in range(9)]
    await until(lambda: len(begun) == 3, why="it has its share of the slots")

    assert (await bus.ask(GetAgent(tenant="default", name="a"), Agent)).name == "a"
    hanging.set()
    assert [(await one).name for one in slow] == [str(n) for n in range(9)]
    await service.stop(1)


async def test_callers_of_a_stopping_service_get_a_retry_at_once(bus):
    begun = asyncio.Event()

    async def on_get(_):
        begun.set()
        await asyncio.Event().wait()

    service = await answering(bus, on_get, slots=1)
    asked = [asyncio.create_task(bus.ask(GetAgent(tenant="default", name=n), Agent, timeout_s=60)) for n in "ab"]
    await begun.wait()
    await bus.settled()
    await service.bus.settled()
    await service.stop(0.05)

    told = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 10)

    assert [str(error) for error in told] == ["router is being stopped: ask again"] * 2
    assert {type(error) for error in told} == {Retry}


async def test_a_refusal_of_any_size_comes_back(bus):
    async def on_get(asked):
        raise NotFound("agent", asked.name * 4)

    service = await answering(bus, on_get)

    with pytest.raises(Refused) as caught:
        await bus.ask(GetAgent(tenant="default", name="y" * 400_000), Agent)

    assert len(str(caught.value)) > 1_600_000
    await service.stop(1)


async def test_no_responder_differs_from_a_refusal(bus):
    with pytest.raises(Unavailable, match=r"agents.get does not answer"):
        await bus.ask(GetAgent(tenant="default", name="a"), Agent)


async def test_each_of_many_that_wait_gives_up_in_its_own_time(bus):
    await bus.nc.subscribe("silent")
    heard = await bus.nc.subscribe("late")
    await bus.settled()
    gave_up = []

    async def ask(timeout_s: float) -> None:
        with pytest.raises(TimeoutError):
            await bus.request("silent", b"", timeout_s=timeout_s)
        gave_up.append(timeout_s)

    answered = asyncio.create_task(bus.request("late", b"", timeout_s=60))
    async with asyncio.timeout(10):
        await asyncio.gather(*(ask(timeout_s) for timeout_s in (0.3, 0.1, 0.2, 0.1)))
    await (await heard.next_msg()).respond(b"here")

    assert gave_up == [0.1, 0.1, 0.2, 0.3]
    assert (await answered).data == b"here"
    async with asyncio.timeout(10):
        await asyncio.gather(*(ask(timeout_s) for timeout_s in (0.02, 0.01)))
    assert gave_up[4:] == [0.01, 0.02]


async def test_a_bad_request_is_answered_with_the_field_that_is_wrong(bus):
    async def on_get(_):
        raise AssertionError("never reached")

    service = await answering(bus, on_get)

    reply = await bus.nc.request("agents.get.default", b'{"nom": 1}', timeout=5)

    assert reply.headers["Wayline-Error"] == "invalid_message"
    assert b"name: Field required" in reply.data
    await service.stop(1)


async def test_everyone_is_asked_and_each_answers_once(bus):
    def named(name):
        async def on_get(_):
            return Agent(name=name, version=1, config=AgentConfig())

        return on_get

    services = [await answering(bus, named(name), everyone=True) for name in ("a", "b", "c")]

    found = await bus.ask_everyone(GetAgent(tenant="default", name="x"), Agent)

    assert sorted(agent.name for agent in found) == ["a", "b", "c"]
    for service in services:
        await service.stop(1)


async def test_one_refusal_hides_no_other_responders_answer(bus):
    async def on_get(_):
        return Agent(name="a", version=1, config=AgentConfig())

    async def on_get_badly(_):
        raise NotFound("agent", "x")

    services = [await answering(bus, handle, everyone=True) for handle in (on_get_badly, on_get)]

    found = await bus.ask_everyone(GetAgent(tenant="default", name="x"), Agent)

    assert [agent.name for agent in found] == ["a"]
    for service in services:
        await service.stop(1)


async def test_asking_everyone_without_responders_fails_at_once(bus, monkeypatch):
    monkeypatch.setattr(requests, "QUIET_S", 60)

    with pytest.raises(Unavailable, match=r"agents.get does not answer"):
        await asyncio.wait_for(bus.ask_everyone(GetAgent(tenant="default", name="a"), Agent), 10)


async def test_unknown_fields_of_a_newer_builds_answer_are_ignored(bus):
    class NewerConfig(AgentConfig):
        mood: str = "cheerful"

    class NewerAgent(Agent):
        config: NewerConfig

    async def on_get(asked):
        return NewerAgent(name=asked.name, version=1, config=NewerConfig(description="d"))

    service = await answering(bus, on_get)

    found = await bus.ask(GetAgent(tenant="default", name="a"), Agent)

    assert found == Agent(name="a", version=1, config=AgentConfig(description="d"))
    await service.stop(1)


async def test_a_request_is_given_up_when_its_server_was_restarted(nats_factory):
    """The server has forgotten who may answer whom: to wait on would be to wait in vain."""
    server = await nats_factory()
    asker = await Bus.connect(BusSettings(nats_url=server.url), service="test", exit_when_closed=False)
    heard = asyncio.Event()

    async def on_get(_):
        heard.set()
        await asyncio.Event().wait()

    service = await answering(asker, on_get)
    asking = asyncio.create_task(asker.ask(GetAgent(tenant="default", name="a"), Agent, timeout_s=600))
    await heard.wait()

    await server.kill()
    await server.start()

    with pytest.raises(Unavailable):
        await asyncio.wait_for(asking, 30)
    await service.stop(0)
    await asker.close()


PLENTY = AgentConfig(instructions="€" * 90_000)
"""More than a message."""


async def objects(bus: Bus, bucket: str) -> int:
    return (await bus.js.stream_info(f"OBJ_{bucket}")).state.messages


async def test_a_large_reply_leaves_nothing_in_a_store_that_is_kept(bus):
    async def on_get(asked):
        return Agent(name=asked.name, version=1, config=PLENTY)

    service = await answering(bus, on_get)

    for _ in range(3):
        assert (await bus.ask(GetAgent(tenant="acme", name="a"), Agent)).config == PLENTY

    assert await objects(bus, PAYLOADS) == 0
    assert service.bus.stored.total == 0
    store = (await bus.js.stream_info(f"OBJ_{REPLIES}")).config
    assert (store.storage, store.max_age) == ("file", REPLIES_KEPT_S)
    await service.stop(1)


async def test_a_version_without_the_store_of_replies_is_answered_as_before(bus):
    async def on_get(asked):
        return Agent(name=asked.name, version=1, config=PLENTY)

    service = await answering(bus, on_get)
    body, headers = await bus.wire(GetAgent(tenant="acme", name="a"))

    reply = await bus.request("agents.get.acme", body, timeout_s=5, headers=headers)

    assert (reply.headers or {})["Wayline-Claims"] == "1"
    assert "€".encode() * 90_000 in await bus.claims.check_out(reply.data, within="acme/")
    assert await objects(bus, REPLIES) == 0
    await service.stop(1)


async def test_large_replies_to_one_tenant_do_not_take_anothers_room(bus, monkeypatch):
    async def on_get(asked):
        return Agent(name=asked.name, version=1, config=PLENTY)

    service = await answering(bus, on_get)
    monkeypatch.setattr(service.bus.replies, "_most", 400_000)
    await bus.ask(GetAgent(tenant="acme", name="a"), Agent)

    with pytest.raises(Retry, match="its share") as refused:
        await bus.ask(GetAgent(tenant="acme", name="a"), Agent)

    assert refused.value.status == 429
    assert (await bus.ask(GetAgent(tenant="other", name="a"), Agent)).version == 1
    await service.stop(1)
