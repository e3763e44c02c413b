"""A router passes over what executors cannot call: it hears what they tell each other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from wayline.chassis import Bus
from wayline.executor.adapters.circuit_breaker import FAILURES_MAX, OPEN_S
from wayline.executor.adapters.provider_gates import ProviderGates
from wayline.llm import ModelError
from wayline.router.models.availability import WAIT_S, Availability
from wayline.testkit import until

MODEL, OTHER = "chat/llama 3.1:8b", "anthropic/claude-haiku-5-5"
BROKEN = ModelError("server_error", "500", retryable=True)


def busy(after_s: float) -> ModelError:
    return ModelError("rate_limited", "429", retryable=True, after_s=after_s)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


Listen = Callable[[], Awaitable[Availability]]


@pytest.fixture
async def listen(bus: Bus, clock: Clock) -> AsyncIterator[Listen]:
    listening: list[Availability] = []

    async def another() -> Availability:
        listening.append(Availability(bus, clock=clock))
        await listening[-1].start()
        await bus.settled()
        return listening[-1]

    yield another
    for one in listening:
        await one.stop(0)


async def break_down(gates: ProviderGates) -> None:
    for _ in range(FAILURES_MAX):
        await gates.enter(MODEL)
        await gates.leave(MODEL, error=BROKEN)


async def test_an_open_breaker_is_believed_until_its_time_is_over(bus: Bus, clock: Clock, listen: Listen):
    router = await listen()

    await break_down(ProviderGates(bus, clock=clock))

    await until(lambda: router.away([MODEL, OTHER]), why="the router has heard")
    assert router.away([MODEL, OTHER]) == {MODEL: "keeps failing"}
    clock.now += OPEN_S
    assert router.away([MODEL, OTHER]) == {}


async def test_a_late_router_reads_earlier_outages_and_recoveries(bus: Bus, clock: Clock, listen: Listen):
    gates = ProviderGates(bus, clock=clock)
    await break_down(gates)
    await gates.leave(OTHER, error=busy(100))
    await bus.settled()

    router = await listen()

    assert router.away([MODEL, OTHER]) == {MODEL: "keeps failing", OTHER: "asked to be left alone for 100 s"}
    clock.now += OPEN_S
    assert await gates.enter(MODEL) is None
    await gates.leave(MODEL, spoke=True)
    clock.now -= 1
    await until(lambda: MODEL not in router.away([MODEL]), why="the router has heard that it is well")


async def test_a_short_retry_after_keeps_no_job_away(bus: Bus, clock: Clock, listen: Listen):
    router, gates = await listen(), ProviderGates(bus, clock=clock)

    await gates.leave(OTHER, error=busy(WAIT_S))
    await gates.leave(MODEL, error=busy(WAIT_S + 1))

    await until(lambda: router.away([MODEL]), why="the router has heard the later word")
    assert router.away([OTHER]) == {}
    clock.now += 1
    assert router.away([MODEL]) == {}
