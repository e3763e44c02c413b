"""What executors tell each other about models, on a real bus and with a clock of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from wayline.chassis import Bus, BusSettings
from wayline.chassis.declare import declare
from wayline.chassis.stream_limits import Limits
from wayline.chassis.topology import PROVIDERS
from wayline.executor.adapters.circuit_breaker import FAILURES_MAX, OPEN_S, PROBE_CHECK_S
from wayline.executor.adapters.provider_gates import HOLD_MAX_S, GateClosed, ProviderGates, subject
from wayline.llm import ModelError
from wayline.testkit import until
from wayline.testkit.fixtures import NatsFactory

MODEL = "chat/llama 3.1:8b"
BUSY = ModelError("rate_limited", "429", retryable=True, after_s=20)
BROKEN = ModelError("server_error", "500", retryable=True)
FAILING = "keeps failing"


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Two:
    """Two executors' gates under one clock."""

    url: str
    clock: Clock
    one: ProviderGates
    other: ProviderGates

    async def heard(self) -> None:
        """Wait until both have heard all that was said so far."""
        for gates in (self.one, self.other):
            await gates._bus.settled()


@pytest.fixture
async def two(nats_factory: NatsFactory) -> AsyncIterator[Two]:
    server = await nats_factory()
    buses = [
        await Bus.connect(BusSettings(nats_url=server.url), service="executor", exit_when_closed=False) for _ in "12"
    ]
    async for _ in declare(buses[0].js, Limits(memory=True)):
        pass
    clock = Clock()
    gates = [ProviderGates(bus, clock=clock) for bus in buses]
    for one in gates:
        await one.start()
    for bus in buses:
        await bus.settled()
    yield Two(server.url, clock, *gates)
    for one, bus in zip(gates, buses, strict=True):
        await one.stop(0)
        await bus.close()


async def shut(gates: ProviderGates) -> GateClosed:
    found: list[GateClosed | None] = []

    async def so() -> bool:
        found[:] = [await gates.enter(MODEL)]
        if found[0] is None:
            await gates.leave(MODEL)
        return found[0] is not None

    await until(so, why="the gate is shut")
    assert found[0] is not None
    return found[0]


async def test_when_to_come_back_is_heard_by_the_other_executor(two: Two):
    await two.one.leave(MODEL, error=BUSY)

    assert await shut(two.other) == await shut(two.one) == GateClosed(20, "asked to be left alone")
    two.clock.now += 20
    assert await two.other.enter(MODEL) is None


async def test_an_executor_that_starts_later_reads_it(two: Two):
    await two.one.leave(MODEL, error=BUSY)
    await two.heard()
    bus = await Bus.connect(BusSettings(nats_url=two.url), service="executor", exit_when_closed=False)
    late = ProviderGates(bus, clock=two.clock)

    assert await late.enter(MODEL) == GateClosed(20, "asked to be left alone")
    await bus.close()


async def test_another_model_of_the_provider_is_not_meant(two: Two):
    await two.one.leave(MODEL, error=BUSY)

    assert await two.one.enter("chat/other") is None


async def test_a_breaker_opens_probes_and_closes_for_all_executors(two: Two):
    for _ in range(FAILURES_MAX):
        assert await two.one.enter(MODEL) is None
        await two.one.leave(MODEL, error=BROKEN)

    assert await shut(two.other) == await shut(two.one) == GateClosed(OPEN_S, FAILING)
    two.clock.now += OPEN_S
    assert await two.one.enter(MODEL) is None
    assert await two.one.enter(MODEL) == GateClosed(PROBE_CHECK_S, FAILING)
    # Its first word is enough: the answer may take minutes.
    await two.one.well(MODEL)
    assert await two.one.enter(MODEL) is None

    async def closed() -> bool:
        return two.other._gate(subject(MODEL)).breaker.closed

    await until(closed, why="the other executor knows that it is well")


async def test_a_refused_call_closes_the_breaker_too(two: Two):
    for _ in range(FAILURES_MAX):
        await two.one.leave(MODEL, error=BROKEN)
    two.clock.now += OPEN_S
    assert await two.one.enter(MODEL) is None
    await two.one.leave(MODEL, error=ModelError("invalid_request", "400", retryable=False))

    assert [await two.one.enter(MODEL) for _ in "12"] == [None, None]


async def test_a_probe_that_fails_keeps_it_shut_for_all(two: Two):
    for _ in range(FAILURES_MAX):
        await two.one.leave(MODEL, error=BROKEN)
    two.clock.now += OPEN_S
    assert await two.one.enter(MODEL) is None
    await two.one.leave(MODEL, error=BROKEN)

    assert await shut(two.one) == await shut(two.other) == GateClosed(OPEN_S, FAILING)


async def test_what_a_provider_refuses_is_no_sign_of_its_health(two: Two):
    for code in ("invalid_request", "authentication", "spend_cap", "rate_limited", "context_too_long"):
        for _ in range(FAILURES_MAX):
            await two.one.leave(MODEL, error=ModelError(code, "4xx", retryable=False))

    assert await two.one.enter(MODEL) is None


async def test_a_wrong_clock_shuts_a_gate_for_a_bounded_time(two: Two):
    await two.other._bus.nc.publish(subject(MODEL), b'{"until": 1e12, "why": "asked to be left alone"}')
    await two.other._bus.nc.publish(subject("chat/x"), b"nonsense")

    assert await shut(two.one) == GateClosed(HOLD_MAX_S, "asked to be left alone")


async def test_a_bus_that_does_not_answer_keeps_no_call_waiting(two: Two):
    await two.one._bus.js.delete_stream(f"KV_{PROVIDERS}")

    assert await two.one.enter(MODEL) is None


def test_a_models_name_becomes_a_key_and_stays_distinct():
    assert subject("chat/llama 3.1:8b") == "$KV.PROVIDERS.chat.llama=203=2e1=3a8b"
    assert subject("a/b/c") != subject("a/b.c") != subject("a.b/c")


async def test_models_that_are_left_alone_are_told_with_their_pauses(two: Two):
    well = two.one.left_alone()
    await two.one.enter(MODEL)
    await two.one.leave(MODEL, error=BUSY)
    held = two.one.left_alone()
    two.clock.now += 21
    for _ in range(FAILURES_MAX):
        await two.one.leave(MODEL, error=BROKEN)
    failing = two.one.left_alone()
    two.clock.now += OPEN_S
    probing = two.one.left_alone()
    await two.one.well(MODEL)

    assert [(one.model, one.why, one.retry_after_s) for told in (held, failing, probing) for one in told] == [
        (MODEL, "held", 20),
        (MODEL, "failing", OPEN_S),
        (MODEL, "failing", 0),
    ]
    assert well == two.one.left_alone() == ()
