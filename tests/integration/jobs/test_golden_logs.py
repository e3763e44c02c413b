"""Golden logs: jobs against the simulator whose exported files must replay for ever.

`make golden` writes those that are not yet in tests/unit/executor/replay/golden. One that is there is never written
again: what this version recorded, every later one has to replay.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts.agents import Routing
from wayline.contracts.models import ModelCard, PutModel
from wayline.contracts.tools import RUN_AGENT, RUN_CODE
from wayline.executor.replay import Replay, replay
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import read_export, read_exported_history
from wayline.llm.catalogue import bundled
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Fault, Say, Script, Simulator, by_rules
from wayline.testkit import Platform
from wayline.testkit.effects_server import EffectsServer

from .conftest import until_listed, with_tools
from .ended_jobs import differences
from .test_approvals import waiting

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

GOLDEN = Path(__file__).parents[2] / "unit" / "executor" / "replay" / "golden"
WRITE = bool(os.environ.get("WAYLINE_WRITE_GOLDEN"))
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def three_lookups(asked) -> Say:
    """Look something up three times, the last two beside each other, then answer."""
    found = len(asked.results)
    if found == 0:
        return Say(tools=(("effects__look_read", {"key": "a"}),))
    if found == 1:
        return Say(text="One more.", tools=(("effects__look_read", {"key": "b"}), ("effects__look_read", {"key": "c"})))
    if found == 3:
        return Say(tools=(("effects__put_idempotent", {"key": "d"}),))
    return Say(text="a, b, c and d are there")


def searched(asked) -> Say:
    """Find a tool, call it, then answer."""
    found = sum(turn.role == "tool" for turn in asked.turns)
    if found == 0:
        return Say(tools=(("tool_search", {"query": "put something that may be repeated"}),))
    return Say(text="it is there") if found == 2 else Say(tools=(("effects__put_idempotent", {"key": "d"}),))


def corrected(asked) -> Say:
    """Answer with words, and with JSON once that is corrected."""
    return Say(text='{"n": 3}') if "does not fit" in asked.turns[-1].text else Say(text="three")


SCRIPTS = {"corrected": corrected, "search": searched}


OPUS, SONNET = "anthropic/claude-opus-4-8", "anthropic/claude-sonnet-5-5"
PAYING_PROGRAM = """
looked = await effects__look_read(query="a")
await effects__pay_once(amount=7)
"""


def aside(asked) -> bool:
    """Return whether a call is beside the conversation."""
    return asked.attempt.rpartition("/")[2].startswith("a")


LOOK, PUT, PAY = "effects__look_read", "effects__put_idempotent", "effects__pay_once"
PROGRAM = """
found = [await effects__look_read(query=key) for key in ("a", "b")]
await effects__put_idempotent(value="c")
len(found)
"""


@dataclass
class Stage:
    """Services for the tests that neither stop one nor change what a model is or whether it is there."""

    platform: Platform
    effects: EffectsServer
    simulator: Simulator

    def play(self, script: Script) -> Platform:
        """Have the models follow a script; nothing was asked and nothing has acted before."""
        self.simulator.play(script)
        self.effects.forget()
        return self.platform


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    effects = EffectsServer(tmp_path_factory.mktemp("effects") / "effects.txt")
    simulator = await start(module_platform, effects, by_rules)
    await until_listed(module_platform, PAY)
    yield Stage(module_platform, effects, simulator)
    assert await differences(module_platform.bus) == []
    effects.kill()


async def start(platform: Platform, effects: EffectsServer, script: Any) -> Simulator:
    """Start services whose models the simulator plays and whose tools are counted effects."""
    await effects.start()
    simulator = await platform.simulate(script)
    await platform.start(
        "router",
        "executor",
        "tool_registry",
        "gateway",
        router=RouterSettings(anthropic_base_url=simulator.url),
        executor=ExecutorSettings(anthropic_base_url=simulator.url),
        tool_registry=with_tools(effects.settings()),
    )
    return simulator


async def replay_export(platform: Platform, job_id: str, name: str | None = None) -> Replay:
    """Replay a job from its exported file, which becomes a new golden log where `make golden` asks for it."""
    file = (await (await platform.http()).get(f"/v1/jobs/{job_id}/export")).json()
    path = GOLDEN / f"{name or job_id}.json"
    if WRITE and not path.exists():
        path.write_bytes(orjson.dumps(file, option=orjson.OPT_INDENT_2) + b"\n")
    return replay(read_export(file), history=read_exported_history(file))


@pytest.mark.parametrize("name", ["tools", "corrected", "partial", "search"])
async def test_a_job_replays_as_it_ran(stage: Stage, name):
    platform = stage.play(SCRIPTS.get(name, three_lookups))
    schema = SCHEMA if name == "corrected" else None
    tools = {"always": ["effects__look_*"], "deferred": ["effects__*"]} if name == "search" else ("effects__*",)
    await platform.put_agent("golden", tools=tools, output_schema=schema, instructions="Look, then answer.")
    await platform.submit(name, "What is there?", agent="golden", max_steps=2 if name == "partial" else 10)
    ended = await platform.wait_for(name)

    assert ended.status == "completed"
    assert ended.partial == (name == "partial")
    assert ended.route is not None and ended.route.provider == "anthropic"
    assert (await replay_export(platform, name)).divergence is None


async def test_a_sessions_second_turn_replays_with_its_history(stage: Stage):
    def looks(asked) -> Say:
        return Say(text="It is there.", thinking="Found.") if asked.results else Say(tools=((LOOK, {"query": "a"}),))

    platform = stage.play(looks)
    await platform.put_agent("golden", tools=("effects__*",), instructions="Look, then answer.")
    for job_id in ("first", "session"):
        await platform.publish({"agent": "golden", "input": "Is it there?", "job_id": job_id, "session_id": "twice"})
        assert (await platform.wait_for(job_id)).status == "completed"

    replayed = await replay_export(platform, "session")

    assert (replayed.divergence, replayed.is_history_compared) == (None, True)


async def test_a_parent_and_its_child_replay_as_they_ran(stage: Stage):
    def boss(asked) -> Say:
        if asked.text.startswith("The part"):
            return Say(text="42") if asked.results else Say(tools=((LOOK, {"query": "a"}),))
        task = (RUN_AGENT, {"agent": "worker", "input": "The part"})
        return Say(text="It is 42.") if asked.results else Say(tools=(task,))

    platform = stage.play(boss)
    await platform.put_agent("worker", tools=("effects__*",), description="Works.", instructions="Work.")
    await platform.put_agent("golden", tools=(), agents=("worker",), instructions="Have it done.")
    await platform.submit("parent", "The whole", agent="golden")
    parent = await platform.wait_for("parent")
    assert (parent.status, parent.answer) == ("completed", "It is 42.")

    assert (await replay_export(platform, "parent")).divergence is None
    assert (await replay_export(platform, parent.children[0].job_id, "child")).divergence is None


async def test_a_job_that_ran_a_program_replays_as_it_ran(stage: Stage):
    def coder(asked) -> Say:
        return Say(text="Both are there.") if asked.results else Say(tools=((RUN_CODE, {"code": PROGRAM}),))

    platform = stage.play(coder)
    await platform.put_agent("golden", tools=("effects__*",), code=True, instructions="Look, then answer.")
    await platform.submit("code", "Are a and b there?", agent="golden")
    assert (await platform.wait_for("code")).status == "completed"
    assert stage.effects.count("put_idempotent") == 1

    assert (await replay_export(platform, "code")).divergence is None


async def test_a_job_whose_call_was_approved_replays_as_it_ran(stage: Stage):
    def pays(asked) -> Say:
        calls = ((LOOK, {"query": "a"}), (PAY, {"amount": 7}))
        return Say(text="It is paid.") if asked.results else Say(text="I pay.", tools=calls)

    platform = stage.play(pays)
    await platform.put_agent("golden", tools=("effects__*",), ask_tools={PAY: "always"}, instructions="Pay.")
    await platform.submit("approval", "Pay 7.", agent="golden")
    [asked] = await waiting(platform, "approval")
    await platform.decide("approval", asked.approval_id, by="ann")
    assert (await platform.wait_for("approval")).status == "completed"
    assert stage.effects.count("pay_once") == 1

    assert (await replay_export(platform, "approval")).divergence is None


async def test_a_job_that_was_steered_replays_as_it_ran(stage: Stage):
    begun, told = asyncio.Event(), asyncio.Event()

    async def slowly(asked) -> Say:
        if not begun.is_set():
            begun.set()
            await told.wait()
            return Say(tools=((LOOK, {"query": "a"}),))
        return Say(text="a and b are there.")

    platform = stage.play(slowly)
    await platform.put_agent("golden", tools=("effects__*",), instructions="Look, then answer.")
    body = {"agent": "golden", "session_id": "steered"}
    await platform.publish({**body, "input": "Is a there?", "job_id": "steered"})
    await begun.wait()
    await platform.publish({**body, "input": "And b?", "job_id": "more", "options": {"when_busy": "steer"}})
    await platform.wait_until("more", lambda job: job.life.waiting is not None, "it waits")
    await platform.wait_until_empty("SUBMIT")
    told.set()
    assert (await platform.wait_for("more")).handed_to == "steered"
    assert (await platform.wait_for("steered")).status == "completed"

    assert (await replay_export(platform, "steered")).divergence is None


async def types(platform: Platform, job_id: str) -> list[str]:
    return [event.type for event in await platform.events(job_id)]


def looks_once(asked) -> Say:
    return Say(text="It is there.") if asked.results else Say(tools=((LOOK, {"query": "a"}),))


async def test_a_job_that_ran_in_a_circle_replays_as_it_ran(stage: Stage):
    platform = stage.play(lambda _: Say(tools=((LOOK, {"query": "a"}),)))
    await platform.put_agent("golden", tools=("effects__*",), instructions="Look, then answer.")
    await platform.submit("loop", "Is a there?", agent="golden", max_steps=10)
    ended = await platform.wait_for("loop")
    assert (ended.status, ended.partial, ended.steps) == ("completed", True, 5)
    repeated = [event.repeat_of for event in await platform.events_of("loop", e.ToolCompleted)]
    assert repeated[:4] == [None, None, "1/1", "1/1"]

    assert (await replay_export(platform, "loop")).divergence is None


async def test_an_answer_sent_back_for_its_required_tools_replays(stage: Stage):
    def hasty(asked) -> Say:
        return Say(text="It is there.") if len(asked.turns) == 1 else looks_once(asked)

    platform = stage.play(hasty)
    await platform.put_agent("golden", tools=("effects__*",), instructions="Look, then answer.")
    await platform.submit("required", "Is a there?", agent="golden", required_tools=[LOOK])
    assert (await platform.wait_for("required")).steps == 3
    # The last step is told that it must answer, too.
    correction, _ = await platform.events_of("required", e.ContextInjected)
    assert correction.about == "required_tools"

    assert (await replay_export(platform, "required")).divergence is None


@pytest.mark.asyncio(loop_scope="function")
async def test_a_job_that_went_on_with_another_model_replays(platform: Platform, effects: EffectsServer):
    simulator = await start(platform, effects, looks_once)
    simulator.faults = lambda asked: Fault(error="spend_cap") if "opus" in asked.model and asked.results else Fault()
    routing = Routing(mode="locked", primary=OPUS, fallbacks=(SONNET,))
    await platform.put_agent("golden", tools=("effects__*",), routing=routing, instructions="Look, then answer.")
    await platform.submit("rerouted", "Is a there?", agent="golden", budget_usd="5")
    assert (await platform.wait_for("rerouted")).status == "completed"
    assert {"model.failed", "job.rerouted"} <= {*await types(platform, "rerouted")}

    assert (await replay_export(platform, "rerouted")).divergence is None


async def test_a_program_that_waited_for_an_approval_replays(stage: Stage):
    def coder(asked) -> Say:
        return Say(text="It is paid.") if asked.results else Say(tools=((RUN_CODE, {"code": PAYING_PROGRAM}),))

    platform = stage.play(coder)
    agent = {"tools": ("effects__*",), "code": True, "ask_tools": {PAY: "always"}, "instructions": "Pay."}
    await platform.put_agent("golden", **agent)
    await platform.submit("suspended", "Pay 7.", agent="golden")
    [asked] = await waiting(platform, "suspended")
    await platform.decide("suspended", asked.approval_id, by="ann")
    assert (await platform.wait_for("suspended")).status == "completed"
    assert "code.suspended" in await types(platform, "suspended")

    assert (await replay_export(platform, "suspended")).divergence is None


@pytest.mark.asyncio(loop_scope="function")
async def test_a_session_that_was_compacted_replays(platform: Platform, effects: EffectsServer):
    def talks(asked) -> Say:
        return Say(text="They talked of the tide.") if aside(asked) else Say(text="The tide comes in. " * 100)

    await start(platform, effects, talks)
    card = next(card for card in bundled() if card.name == SONNET)
    small = PutModel(tenant="default", card=card.model_copy(update={"context_window": 6_000}))
    await platform.bus.ask(small, ModelCard)
    await platform.put_agent("golden", tools=(), instructions="You know the sea. ", max_output_tokens=1_500)
    options, number = {"model": SONNET, "budget_usd": "5"}, 0
    for number in range(12):
        body = {"agent": "golden", "input": f"This is turn {number}.", "session_id": "s", "options": options}
        await platform.publish({**body, "job_id": f"turn{number}"})
        assert (await platform.wait_for(f"turn{number}")).status == "completed"
        if "context.compacted" in await types(platform, f"turn{number}"):
            break

    replayed = await replay_export(platform, f"turn{number}", "compacted")

    assert "context.compacted" in await types(platform, f"turn{number}")
    assert (replayed.divergence, replayed.is_history_compared) == (None, True)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_session_whose_history_is_lost_replays(platform: Platform, effects: EffectsServer):
    simulator = await start(platform, effects, looks_once)
    await platform.put_agent("golden", tools=("effects__*",), instructions="Look, then answer.")
    for job_id in ("before", "lost"):
        await platform.publish({"agent": "golden", "input": "Is it there?", "job_id": job_id, "session_id": "s"})
        assert (await platform.wait_for(job_id)).status == "completed"
        if job_id == "before":
            await platform.bus.js.purge_stream("EVENTS", subject="events.default.before")
            await platform.stop("executor")
            await platform.start("executor", executor=ExecutorSettings(anthropic_base_url=simulator.url))
    [continued] = await platform.events_of("lost", e.SessionContinued)
    assert continued.lost is not None

    assert (await replay_export(platform, "lost")).divergence is None
