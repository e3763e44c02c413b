"""`kill -9` around the summary of a long result: it is paid for once, and the job goes on with what it has."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent, Routing
from wayline.contracts.models import ModelCard, PutModel, Tier
from wayline.executor.replay import replay
from wayline.simulator.chat_server import Say
from wayline.testkit import until

from .conftest import MakePlatform
from .platform import TENANT, FaultPlatform, runs, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

LONG = "'The tide comes in. ' * 2000"
SUMMARY = Say("In short: all is well.")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform()
    await platform.fleet.ensure("router", "tool_registry")
    tiers: dict[str, Tier] = {"helper": "flash", "plain": "standard"}
    for model, tier in tiers.items():
        card = ModelCard(provider="chat", model=model, tier=tier)
        await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
    routing = Routing(fast="chat/helper", primary="chat/plain", escalation="chat/plain")
    config = AgentConfig(routing=routing, code=True, summarize_results=True)
    await platform.bus.ask(PutAgent(tenant=TENANT, name="reader", config=config), Agent)
    return platform


async def finish(platform: FaultPlatform, name: str) -> list[e.Event]:
    """Let another executor end the job, and return its log once everything that must be true was checked."""
    platform.helper = SUMMARY
    await platform.fleet.start("executor")
    await platform.until_ended(name)
    await platform.until_quiet()
    await platform.fleet.stop("executor")
    await platform.check(name)
    assert (await platform.job(name)).life.status == "completed"
    asked = [attempt for attempt, _ in platform.chat.calls if attempt.startswith(f"{TENANT}/{name}/1/a")]
    assert asked == [f"{TENANT}/{name}/1/a1"], "the helper is asked once"
    events = await platform.events(name)
    assert replay(events).divergence is None
    return events


def of(events: list[e.Event], kind: type[e.Event]) -> list[e.Event]:
    return [event for event in events if isinstance(event, kind)]


def assert_lost(events: list[e.Event]) -> None:
    [failed] = of(events, e.AuxiliaryFailed)
    assert isinstance(failed, e.AuxiliaryFailed)
    assert (failed.error.code, failed.about) == (e.LOST, "1/1")
    assert failed.unsettled is not None
    assert of(events, e.ResultSummarized) == []


@pytest.mark.slow
async def test_a_summary_that_nobody_recorded_is_not_asked_again(platform: FaultPlatform):
    name = "answered"
    doomed = await platform.fleet.start("executor", Failpoint.EXECUTOR_AUX_AFTER)
    await platform.submit_plan(name, runs(LONG), says("done"), agent="reader", model=None)
    await platform.until_dead(doomed, name)

    assert_lost(await finish(platform, name))


@pytest.mark.slow
async def test_a_kill_while_the_helper_writes_leaves_the_extract(platform: FaultPlatform):
    name, held = "writing", asyncio.Event()
    platform.helper = Say(SUMMARY.text, hold=held)
    doomed = await platform.fleet.start("executor")
    await platform.submit_plan(name, runs(LONG), says("done"), agent="reader", model=None)
    await until(
        lambda: any(f"/{name}/1/a1" in attempt for attempt, _ in platform.chat.calls),
        within=60,
        why="the helper writes",
    )
    doomed.kill()

    assert_lost(await finish(platform, name))
    held.set()


async def test_a_recorded_summary_is_what_the_next_holder_shows(platform: FaultPlatform):
    name = "recorded"
    doomed = await platform.fleet.start("executor")
    await platform.submit_plan(name, runs(LONG), says("done", hold=name), agent="reader", model=None)
    await until(lambda: name in platform.holds, within=60, why="the model answers from the summary")
    doomed.kill()
    platform.holds[name].set()

    events = await finish(platform, name)

    [summarized] = of(events, e.ResultSummarized)
    assert isinstance(summarized, e.ResultSummarized)
    prompts = [body for attempt, body in platform.chat.calls if f"/{name}/2/m" in attempt]
    assert len(prompts) == 2
    shown = [next(m["content"] for m in body["messages"] if m["role"] == "tool") for body in prompts]
    assert shown == [summarized.content] * 2
    assert SUMMARY.text in summarized.content
