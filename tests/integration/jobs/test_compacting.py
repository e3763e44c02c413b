"""A conversation that outgrows its model: summarised seldom, paid for, and taken by providers that check the rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.models import ModelCard, PutModel
from wayline.executor.decide.compaction import AGAIN_AFTER_STEPS, END_SHARE, START_SHARE
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.llm.catalogue import bundled
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Asked, Fault, Say, Simulator
from wayline.testkit import Platform

from .ended_jobs import differences

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

CLAUDE, GPT = "anthropic/claude-sonnet-5-5", "openai/gpt-6.1-terra"
CLOCK = "get_current_time"
WINDOW = 16_000
STEPS = 40
WORDS = "The tide comes in and goes out again, as it did yesterday. " * 60
SUMMARY = "It is a quarter past nine, as the clock said at every step."


def aside(asked: Asked) -> bool:
    return asked.attempt.rpartition("/")[2].startswith("a")


def zone(step: int) -> dict[str, str]:
    """Return other arguments at each step: the same call again and again is taken for a loop."""
    return {"timezone": f"Etc/GMT{step % 26 - 13:+d}"}


def says(asked: Asked) -> Say:
    if aside(asked):
        return Say(text=SUMMARY)
    step = int(asked.attempt.split("/")[2])
    if step == STEPS:
        return Say(text="All is well.", thinking="Enough.")
    return Say(text=f"{step}: {WORDS}", tools=((CLOCK, zone(step)),), thinking=f"What is next, after {step}?")


async def start(platform: Platform, provider: Simulator) -> None:
    urls: dict[str, Any] = {"anthropic_base_url": provider.url, "openai_base_url": provider.openai_url}
    router, executor = RouterSettings(**urls), ExecutorSettings(**urls, tool_wait_s=2.0)
    await platform.start("router", "tool_registry", "executor", router=router, executor=executor)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider(module_platform: Platform) -> AsyncIterator[Simulator]:
    """The models of services for the tests in which they are always there."""
    provider = await module_platform.simulate(says)
    await start(module_platform, provider)
    yield provider
    assert await differences(module_platform.bus) == []


@pytest_asyncio.fixture(loop_scope="module")
async def simulator(provider: Simulator) -> Simulator:
    provider.play(says)
    return provider


async def run(platform: Platform, model: str) -> list[e.Event]:
    """A job of many long steps on a model whose window is small."""
    card = next(card for card in bundled() if card.name == model)
    small = card.model_copy(update={"context_window": WINDOW})
    await platform.bus.ask(PutModel(tenant=platform.tenant, card=small), ModelCard)
    agent = AgentConfig(
        instructions="Watch the sea.", tools=(CLOCK,), max_steps=STEPS, adapt_steps=False, max_output_tokens=1_500
    )
    await platform.put_agent("watch", agent)
    await platform.submit("j1", "Tell me the time, often.", agent="watch", model=model, budget_usd="5")
    await platform.wait_for("j1", within=60)
    return await platform.events("j1")


def prompts(events: list[e.Event]) -> list[tuple[int, int]]:
    """Each call's step, and how long the provider found its prompt."""
    return [(event.step, event.usage.input) for event in events if isinstance(event, e.ModelCompleted)]


@pytest.mark.parametrize("model", [CLAUDE, GPT])
async def test_a_long_job_is_compacted_rarely_and_stays_valid(
    module_platform: Platform, simulator: Simulator, model: str
):
    platform = await module_platform.new_tenant()
    events = await run(platform, model)

    job = await platform.job("j1")
    assert (job.life.status, job.life.error) == ("completed", None)
    assert [event for event in events if isinstance(event, e.ModelFailed)] == []
    compacted = [at for at, event in enumerate(events) if isinstance(event, e.ContextCompacted)]
    assert len(compacted) >= 2
    following = [next(event for event in events[at:] if isinstance(event, e.ModelRequested)) for at in compacted]
    assert {event.cache_break for event in following} == {"compaction"}
    steps = [event.step for event in following]
    assert all(later - earlier > AGAIN_AFTER_STEPS for earlier, later in pairwise(steps))
    for step, tokens in prompts(events):
        assert tokens <= (END_SHARE if step in steps else START_SHARE) * WINDOW, step
    others = [event for event in events if isinstance(event, e.ModelRequested) and event not in following]
    assert {event.cache_break for event in others} == {None}
    billed = sum((charge.usd for charge in simulator.bill.charges), Decimal(0))
    assert job.money.cost_usd == billed
    assert job.money.costs.aux["compaction"] == sum(
        charge.usd for charge in simulator.bill.charges if charge.attempt.rpartition("/")[2].startswith("a")
    )


async def test_the_summary_stands_between_the_task_and_whole_steps(module_platform: Platform, simulator: Simulator):
    await run(await module_platform.new_tenant(), CLAUDE)

    last = [asked for asked in simulator.requests if not aside(asked)][-1]
    assert last.turns[0].text.startswith("Tell me the time, often.")
    assert any(SUMMARY in turn.text for turn in last.turns)
    summarised = next(asked for asked in simulator.requests if aside(asked))
    assert "Tell me the time, often." in summarised.text and "CALL OF get_current_time" in summarised.text


@pytest.mark.asyncio(loop_scope="function")
async def test_a_job_whose_summary_fails_goes_on_and_retries_later(platform: Platform):
    simulator = await platform.simulate(says)
    simulator.faults = lambda asked: Fault(error="overloaded") if aside(asked) else Fault()
    await start(platform, simulator)
    events = await run(platform, CLAUDE)

    assert not [event for event in events if isinstance(event, e.ContextCompacted)]
    failed = [event for event in events if isinstance(event, e.AuxiliaryFailed)]
    steps = [int(event.attempt_id.split("/")[2]) for event in failed]
    assert len(steps) >= 2
    assert all(later - earlier >= AGAIN_AFTER_STEPS for earlier, later in pairwise(steps))
    assert len({event.attempt_id for event in failed}) == len(failed)
    assert (await platform.job("j1")).life.status == "completed"
