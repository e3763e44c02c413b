"""Golden logs: jobs against the simulator whose exported files must replay for ever.

`make golden` writes them anew into tests/unit/executor/replay/golden: after a deliberate change of a prompt.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from wayline.contracts.tools import RUN_AGENT, RUN_CODE
from wayline.executor.replay import Replay, replay
from wayline.executor.settings import Settings as ExecutorSettings
from wayline.journal import read_export, read_exported_history
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator import Say
from wayline.testkit import Platform
from wayline.testkit.effects_server import EffectsServer

from .conftest import until_listed, with_tools
from .test_approvals import waiting

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


LOOK, PUT, PAY = "effects__look_read", "effects__put_idempotent", "effects__pay_once"
PROGRAM = """
found = [await effects__look_read(query=key) for key in ("a", "b")]
await effects__put_idempotent(value="c")
len(found)
"""


async def start(platform: Platform, effects: EffectsServer, script: Any) -> None:
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


async def replay_export(platform: Platform, job_id: str, name: str | None = None) -> Replay:
    """Replay a job from its exported file, which becomes a golden log where `make golden` asks for it."""
    file = (await (await platform.http()).get(f"/v1/jobs/{job_id}/export")).json()
    if WRITE:
        (GOLDEN / f"{name or job_id}.json").write_bytes(orjson.dumps(file, option=orjson.OPT_INDENT_2) + b"\n")
    return replay(read_export(file), history=read_exported_history(file))


@pytest.mark.parametrize("name", ["tools", "corrected", "partial", "search"])
async def test_a_job_replays_as_it_ran(platform: Platform, effects: EffectsServer, name):
    await start(platform, effects, SCRIPTS.get(name, three_lookups))
    schema = SCHEMA if name == "corrected" else None
    tools = {"always": ["effects__look_*"], "deferred": ["effects__*"]} if name == "search" else ("effects__*",)
    await platform.put_agent("golden", tools=tools, output_schema=schema, instructions="Look, then answer.")
    await platform.submit(name, "What is there?", agent="golden", max_steps=2 if name == "partial" else 10)
    ended = await platform.wait_for(name)

    assert ended.status == "completed"
    assert ended.partial == (name == "partial")
    assert ended.route is not None and ended.route.provider == "anthropic"
    assert (await replay_export(platform, name)).divergence is None


async def test_a_sessions_second_turn_replays_with_its_history(platform: Platform, effects: EffectsServer):
    def looks(asked) -> Say:
        return Say(text="It is there.", thinking="Found.") if asked.results else Say(tools=((LOOK, {"query": "a"}),))

    await start(platform, effects, looks)
    await platform.put_agent("golden", tools=("effects__*",), instructions="Look, then answer.")
    for job_id in ("first", "session"):
        await platform.publish({"agent": "golden", "input": "Is it there?", "job_id": job_id, "session_id": "s"})
        assert (await platform.wait_for(job_id)).status == "completed"

    replayed = await replay_export(platform, "session")

    assert (replayed.divergence, replayed.is_history_compared) == (None, True)


async def test_a_parent_and_its_child_replay_as_they_ran(platform: Platform, effects: EffectsServer):
    def boss(asked) -> Say:
        if asked.text.startswith("The part"):
            return Say(text="42") if asked.results else Say(tools=((LOOK, {"query": "a"}),))
        task = (RUN_AGENT, {"agent": "worker", "input": "The part"})
        return Say(text="It is 42.") if asked.results else Say(tools=(task,))

    await start(platform, effects, boss)
    await platform.put_agent("worker", tools=("effects__*",), description="Works.", instructions="Work.")
    await platform.put_agent("golden", tools=(), agents=("worker",), instructions="Have it done.")
    await platform.submit("parent", "The whole", agent="golden")
    parent = await platform.wait_for("parent")
    assert (parent.status, parent.answer) == ("completed", "It is 42.")

    assert (await replay_export(platform, "parent")).divergence is None
    assert (await replay_export(platform, parent.children[0].job_id, "child")).divergence is None


async def test_a_job_that_ran_a_program_replays_as_it_ran(platform: Platform, effects: EffectsServer):
    def coder(asked) -> Say:
        return Say(text="Both are there.") if asked.results else Say(tools=((RUN_CODE, {"code": PROGRAM}),))

    await start(platform, effects, coder)
    await until_listed(platform, PAY)
    await platform.put_agent("golden", tools=("effects__*",), code=True, instructions="Look, then answer.")
    await platform.submit("code", "Are a and b there?", agent="golden")
    assert (await platform.wait_for("code")).status == "completed"
    assert effects.count("put_idempotent") == 1

    assert (await replay_export(platform, "code")).divergence is None


async def test_a_job_whose_call_was_approved_replays_as_it_ran(platform: Platform, effects: EffectsServer):
    def pays(asked) -> Say:
        calls = ((LOOK, {"query": "a"}), (PAY, {"amount": 7}))
        return Say(text="It is paid.") if asked.results else Say(text="I pay.", tools=calls)

    await start(platform, effects, pays)
    await until_listed(platform, PAY)
    await platform.put_agent("golden", tools=("effects__*",), ask_tools={PAY: "always"}, instructions="Pay.")
    await platform.submit("approval", "Pay 7.", agent="golden")
    [asked] = await waiting(platform, "approval")
    await platform.decide("approval", asked.approval_id, by="ann")
    assert (await platform.wait_for("approval")).status == "completed"
    assert effects.count("pay_once") == 1

    assert (await replay_export(platform, "approval")).divergence is None


async def test_a_job_that_was_steered_replays_as_it_ran(platform: Platform, effects: EffectsServer):
    begun, told = asyncio.Event(), asyncio.Event()

    async def slowly(asked) -> Say:
        if not begun.is_set():
            begun.set()
            await told.wait()
            return Say(tools=((LOOK, {"query": "a"}),))
        return Say(text="a and b are there.")

    await start(platform, effects, slowly)
    await platform.put_agent("golden", tools=("effects__*",), instructions="Look, then answer.")
    body = {"agent": "golden", "session_id": "s"}
    await platform.publish({**body, "input": "Is a there?", "job_id": "steered"})
    await begun.wait()
    await platform.publish({**body, "input": "And b?", "job_id": "more", "options": {"when_busy": "steer"}})
    await platform.wait_until("more", lambda job: job.life.waiting is not None, "it waits")
    await platform.wait_until_empty("SUBMIT")
    told.set()
    assert (await platform.wait_for("more")).handed_to == "steered"
    assert (await platform.wait_for("steered")).status == "completed"

    assert (await replay_export(platform, "steered")).divergence is None
