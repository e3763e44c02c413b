"""An agent with `code`: its model's programs call tools, each call stands in the log, only the end is shown."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from wayline.contracts import events as e
from wayline.contracts.tools import RUN_CODE
from wayline.simulator.chat_server import ChatServer, Say, Script, turns
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from .conftest import chatting, until_listed, with_tools
from .stage import Stage, open_stage

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

KEYS = "one:" + base64.b64encode(b"k" * 32).decode()
PAY_THREE = """
paid = []
for n in range(3):
    paid.append(await effects__pay_once(amount=n))
print("paid", len(paid))
{"last": paid[-1]}
"""


def program(code: str) -> Say:
    return Say(tools=((RUN_CODE, {"code": code}),))


def resumed(how: str) -> float:
    return REGISTRY.get_sample_value("wayline_programs_resumed_total", {"how": how}) or 0.0


async def start(
    platform: Platform,
    effects: EffectsServer,
    chat: ChatServer,
    *,
    keys: str | None = KEYS,
    untrusted: bool = False,
    **settings: Any,
) -> None:
    """Start an installation whose agent `coder` writes programs."""
    await effects.start()
    await platform.start("router", "tool_registry", tool_registry=with_tools(effects.settings(untrusted=untrusted)))
    await until_listed(platform, "effects__pay_once")
    await platform.put_agent("coder", code=True, tools=["effects__*"])
    await executor(platform, chat, keys=keys, **settings)


async def executor(platform: Platform, chat: ChatServer, *, keys: str | None = KEYS, **settings: Any) -> None:
    await platform.start("executor", executor=chatting(chat, snapshot_keys=keys, **settings))


async def play(stage: Stage, script: Script, **agent: Any) -> Platform:
    """Have the model follow a script, for an agent `coder` that writes programs."""
    platform = await stage.play(script)
    await platform.put_agent("coder", **{"code": True, "tools": ["effects__*"], **agent})
    return platform


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(module_platform, tmp_path_factory.mktemp("effects"), snapshot_keys=KEYS) as stage:
        yield stage


async def test_a_programs_calls_are_logged_and_only_its_end_shown(stage: Stage):
    platform = await play(stage, turns(program(PAY_THREE), Say(text="done")))
    await platform.submit("j1", agent="coder", model="chat/m")

    job = await platform.wait_for("j1")

    assert (job.answer, job.steps) == ("done", 2)
    assert job.costs is not None and job.costs.tool == {"effects__pay_once": Decimal("0.03")}
    assert stage.effects.calls() == [("pay_once", f"{platform.tenant}/j1/1/c{n}") for n in (1, 2, 3)]
    offered = stage.chat.calls[0][1]["tools"]
    assert RUN_CODE in [tool["function"]["name"] for tool in offered]
    shown = stage.chat.calls[1][1]["messages"]
    assert [message["role"] for message in shown][-2:] == ["assistant", "tool"]
    assert shown[-1]["content"] == 'paid 3\n{"last":"pay_once done"}'
    types = [event.type for event in await platform.events("j1")]
    assert types[types.index("tool.requested") : types.index("code.completed") + 2] == [
        "tool.requested",
        *["tool.requested", "tool.completed"] * 3,
        "code.completed",
        "tool.completed",
    ]
    [completed] = await platform.events_of("j1", e.CodeCompleted)
    assert [(call.number, call.call, call.tool, call.arguments, call.status) for call in completed.calls] == [
        (n, f"c{n}", "effects__pay_once", {"amount": n - 1}, "success") for n in (1, 2, 3)
    ]
    assert all(call.size_bytes > 0 and call.duration_ms > 0 for call in completed.calls)


async def test_a_type_error_is_shown_and_nothing_has_run(stage: Stage):
    wrong = "print('hello')\nawait effects__pay_once(amount='much')"
    platform = await play(stage, turns(program(wrong), program(PAY_THREE), Say(text="done")))
    await platform.submit("j1", agent="coder", model="chat/m")

    assert (await platform.wait_for("j1")).status == "completed"

    shown = stage.chat.calls[1][1]["messages"][-1]["content"]
    assert shown.startswith("The program failed: main.py:2:25: error[invalid-argument-type]")
    assert "hello" not in shown
    assert [key for _, key in stage.effects.calls()] == [f"{platform.tenant}/j1/2/c{n}" for n in (1, 2, 3)]


async def test_two_programs_of_one_step_have_calls_of_their_own(stage: Stage):
    twice = Say(tools=((RUN_CODE, {"code": PAY_THREE}), (RUN_CODE, {"code": "await effects__pay_once()"})))
    platform = await play(stage, turns(twice, Say(text="done")))
    await platform.submit("j1", agent="coder", model="chat/m")

    assert (await platform.wait_for("j1")).status == "completed"

    assert [key for _, key in stage.effects.calls()] == [f"{platform.tenant}/j1/1/c{n}" for n in (1, 2, 3, 4)]
    first, second = await platform.events_of("j1", e.CodeCompleted)
    assert ([call.number for call in first.calls], [call.number for call in second.calls]) == ([1, 2, 3], [1])


GATHER = """
import asyncio
looked = await asyncio.gather(effects__look_read(query="a"), effects__pay_once(), effects__put_idempotent())
booked = await effects__book_reconcile(what=str(len(looked)))
[*looked, booked]
"""


@pytest.mark.asyncio(loop_scope="function")
async def test_gathered_calls_are_each_made_once(platform: Platform, effects: EffectsServer):
    effects.delay_ms = 200
    async with ChatServer(turns(program(GATHER), Say(text="done"))) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", agent="coder", model="chat/m")

        assert (await platform.wait_for("j1")).answer == "done"

    requested = [event.call for event in await platform.events_of("j1", e.ToolRequested)]
    completed = [event.call for event in await platform.events_of("j1", e.ToolCompleted)]
    assert requested == ["1", "c1", "c2", "c3", "c4"]
    assert sorted(completed) == requested
    assert len(effects.calls()) == 4


@pytest.mark.parametrize(("keys", "how"), [(KEYS, "snapshot"), (None, "recording")])
@pytest.mark.asyncio(loop_scope="function")
async def test_a_drained_executor_suspends_the_program_and_another_goes_on(
    platform: Platform, effects: EffectsServer, keys: str | None, how: str
):
    """Without a shared key the snapshot is refused, and the program runs again from its recorded results."""
    before = {one: resumed(one) for one in ("snapshot", "recording")}
    effects.delay_ms = 700
    async with ChatServer(turns(program(PAY_THREE), Say(text="done"))) as chat:
        await start(platform, effects, chat, keys=keys)
        await platform.submit("j1", agent="coder", model="chat/m")
        await until(lambda: effects.has_begun("pay_once", "default/j1/1/c2"), why="the second call began")

        await platform.stop("executor", 0.1)
        await executor(platform, chat, keys=keys)

        assert (await platform.wait_for("j1")).answer == "done"
    assert {one: resumed(one) - before[one] for one in before} == {"snapshot": 0, "recording": 0} | {how: 1}
    [suspended] = await platform.events_of("j1", e.CodeSuspended)
    assert suspended.pending == ("c2",)
    assert effects.calls() == [("pay_once", f"default/j1/1/c{n}") for n in (1, 2, 3)]
    assert len(chat.calls) == 2, "the program was written once"


@pytest.mark.asyncio(loop_scope="function")
async def test_an_unknown_outcome_parks_the_program_until_a_person_decides(platform: Platform, effects: EffectsServer):
    effects.delay_ms = 400
    async with ChatServer(turns(program(PAY_THREE), Say(text="done"))) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", agent="coder", model="chat/m")
        await until(lambda: effects.has_begun("pay_once", "default/j1/1/c3"), why="the third call began")
        effects.kill()
        job = await platform.wait_until_parked("j1")
        assert job.life.waiting is not None
        assert (job.life.waiting.why, job.life.waiting.wait_id) == ("needs_decision", "1-c3")
        await platform.stop("executor")
        effects.delay_ms = 0
        await effects.start()
        await executor(platform, chat)

        await platform.signal("j1", type="answer", decision_id="1-c3", outcome="succeeded", content="paid by hand")

        assert (await platform.wait_for("j1")).answer == "done"
    assert chat.calls[1][1]["messages"][-1]["content"] == 'paid 3\n{"last":"paid by hand"}'
    assert effects.calls() == [("pay_once", f"default/j1/1/c{n}") for n in (1, 2)]
    types = [event.type for event in await platform.events("j1")]
    assert types.index("tool.unknown") < types.index("code.suspended") < types.index("job.parked")


@pytest.mark.asyncio(loop_scope="function")
async def test_a_cancel_settles_what_a_program_has_begun(platform: Platform, effects: EffectsServer):
    effects.delay_ms = 1_500
    async with ChatServer(turns(program(GATHER), Say(text="done"))) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", agent="coder", model="chat/m")
        await until(lambda: effects.has_begun("pay_once", "default/j1/1/c2"), why="the calls began")

        await platform.signal("j1", type="cancel", reason="enough")

        assert (await platform.wait_for("j1")).status == "cancelled"
    requested = {event.call for event in await platform.events_of("j1", e.ToolRequested)}
    completed = [event.call for event in await platform.events_of("j1", e.ToolCompleted)]
    assert requested == set(completed) == {"1", "c1", "c2", "c3"}
    assert completed[-1] == "1", "the program ends after its calls"


async def test_without_code_no_program_runs(stage: Stage):
    platform = await play(stage, turns(program(PAY_THREE), Say(text="done")))
    await platform.put_agent("plain", tools=["effects__*"])
    await platform.submit("j1", agent="plain", model="chat/m")

    assert (await platform.wait_for("j1")).status == "completed"

    assert RUN_CODE not in [tool["function"]["name"] for tool in stage.chat.calls[0][1]["tools"]]
    assert "there is no tool 'run_code'" in stage.chat.calls[1][1]["messages"][-1]["content"]
    assert stage.effects.calls() == []
