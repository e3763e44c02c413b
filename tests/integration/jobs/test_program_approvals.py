"""A call inside a program that needs an approval suspends the program, and any executor goes on after the decision."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from wayline.chassis.topology import PAYLOADS
from wayline.contracts import events as e
from wayline.executor.replay import replay
from wayline.simulator.chat_server import ChatServer, Say, Script, turns
from wayline.testkit import Platform
from wayline.testkit.effects_server import EffectsServer

from .stage import Stage, open_stage
from .test_approvals import waiting
from .test_code import KEYS, executor, play, program, resumed, start

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

THIRD_ASKS = """
paid = []
for n in range(3):
    if n < 2:
        paid.append(await effects__put_idempotent(value=str(n)))
    else:
        paid.append(await effects__pay_once(amount=n))
print("paid", len(paid))
paid[-1]
"""
TWO_AT_ONCE = """
import asyncio
looked, *paid = await asyncio.gather(effects__look_read(), effects__pay_once(amount=1), effects__pay_once(amount=2))
looked = await effects__look_read(query="after")
[*paid, looked]
"""
CATCHES = """
try:
    await effects__pay_once(amount=1)
except PermissionError as error:
    print("caught:", error)
"went on"
"""
PAYS_FIRST = ("pay_once", "default/j1/1/c1")


CAREFUL: dict[str, Any] = {"ask_tools": {"effects__pay_once": "always"}}


async def careful(platform: Platform, effects: EffectsServer, chat: ChatServer) -> None:
    """Start an installation whose agent `coder` writes programs, and asks before each payment."""
    await start(platform, effects, chat)
    await platform.put_agent("coder", code=True, tools=["effects__*"], **CAREFUL)


async def play_careful(stage: Stage, script: Script) -> Platform:
    """Have the model follow a script, for such an agent."""
    return await play(stage, script, **CAREFUL)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(module_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(module_platform, tmp_path_factory.mktemp("effects"), snapshot_keys=KEYS) as stage:
        yield stage


def shown(chat: ChatServer) -> str:
    """Return what the model was shown of its program."""
    return chat.calls[1][1]["messages"][-1]["content"]


@pytest.mark.asyncio(loop_scope="function")
async def test_an_approval_in_a_loop_outlives_its_executors(platform: Platform, effects: EffectsServer):
    async with ChatServer(turns(program(THIRD_ASKS), Say(text="done"))) as chat:
        await careful(platform, effects, chat)
        before = resumed("snapshot")
        await platform.submit("j1", agent="coder", model="chat/m")
        [asked] = await waiting(platform)
        assert (asked.call, asked.tool, asked.arguments) == ("c3", "effects__pay_once", {"amount": 2})
        job = await platform.job("j1")
        assert job.life.waiting is not None and job.life.waiting.why == "approval"
        await platform.stop("executor", 0.1)
        await executor(platform, chat)

        await platform.decide("j1", asked.approval_id, by="ann")

        assert (await platform.wait_for("j1")).answer == "done"
    assert shown(chat) == "paid 3\npay_once done"
    assert resumed("snapshot") - before == 1
    puts = [("put_idempotent", f"default/j1/1/c{n}") for n in (1, 2)]
    assert effects.calls() == [*puts, ("pay_once", "default/j1/1/c3")]
    assert len(chat.calls) == 2, "the program was written once"
    assert replay(await platform.events("j1")).divergence is None
    types = [event.type for event in await platform.events("j1")]
    assert types[types.index("approval.requested") :][:8] == [
        "approval.requested",
        "code.suspended",
        "job.parked",
        "job.claimed",
        "job.resumed",
        "approval.decided",
        "tool.requested",
        "tool.completed",
    ]


async def test_gathered_calls_ask_for_their_approvals_at_once(stage: Stage):
    platform = await play_careful(stage, turns(program(TWO_AT_ONCE), Say(text="done")))
    await platform.submit("j1", agent="coder", model="chat/m")
    first, second = await waiting(platform)
    assert [(one.call, one.arguments) for one in (first, second)] == [("c2", {"amount": 1}), ("c3", {"amount": 2})]
    assert [tool for tool, _ in stage.effects.calls()] == ["look_read"]

    await platform.decide("j1", second.approval_id)
    await platform.wait_until("j1", lambda job: stage.effects.amounts() == [2], "the second was paid")
    assert [one.approval_id for one in await waiting(platform)] == [first.approval_id]
    await platform.decide("j1", first.approval_id)

    assert (await platform.wait_for("j1")).answer == "done"
    assert shown(stage.chat) == '["pay_once done","pay_once done","look_read done"]'
    assert stage.effects.amounts() == [2, 1]


async def test_a_program_goes_on_with_the_edited_arguments(stage: Stage):
    platform = await play_careful(stage, turns(program(THIRD_ASKS), Say(text="done")))
    await platform.submit("j1", agent="coder", model="chat/m")
    [asked] = await waiting(platform)

    await platform.decide("j1", asked.approval_id, arguments={"amount": 7})

    assert (await platform.wait_for("j1")).answer == "done"
    assert stage.effects.amounts() == [7]
    [completed] = await platform.events_of("j1", e.CodeCompleted)
    assert completed.calls[-1].arguments == {"amount": 7}


@pytest.mark.parametrize("code", [CATCHES, "await effects__pay_once(amount=1)"])
async def test_a_denial_is_an_error_that_a_program_may_catch(stage: Stage, code: str):
    platform = await play_careful(stage, turns(program(code), Say(text="done")))
    await platform.submit("j1", agent="coder", model="chat/m")
    [asked] = await waiting(platform)

    await platform.decide("j1", asked.approval_id, "deny", reason="too much", by="ann")

    assert (await platform.wait_for("j1")).answer == "done"
    why = "a person denied this call, so it was not made: too much"
    if code == CATCHES:
        assert shown(stage.chat) == f"caught: {why}\nwent on"
    else:
        assert f"PermissionError: {why}" in shown(stage.chat)
    assert stage.effects.calls() == []


async def test_a_tampered_snapshot_is_refused_and_no_call_repeated(stage: Stage):
    platform = await play_careful(stage, turns(program(THIRD_ASKS), Say(text="done")))
    before = {one: resumed(one) for one in ("snapshot", "recording")}
    await platform.submit("j1", agent="coder", model="chat/m")
    [asked] = await waiting(platform)
    [suspended] = await platform.events_of("j1", e.CodeSuspended)
    store = await platform.bus.js.object_store(PAYLOADS)
    stored = (await store.get(suspended.snapshot)).data
    assert stored is not None
    await store.put(suspended.snapshot, stored[:-1] + bytes([stored[-1] ^ 1]))

    await platform.decide("j1", asked.approval_id)

    assert (await platform.wait_for("j1")).answer == "done"
    assert {one: resumed(one) - before[one] for one in before} == {"snapshot": 0, "recording": 1}
    assert [key for _, key in stage.effects.calls()] == [f"{platform.tenant}/j1/1/c{n}" for n in (1, 2, 3)]


@pytest.mark.asyncio(loop_scope="function")
async def test_a_program_tainted_by_what_it_read_asks(platform: Platform, effects: EffectsServer):
    reads = "looked = await effects__look_read()\nawait effects__pay_once(amount=len(looked))"
    async with ChatServer(turns(program(reads), Say(text="done"))) as chat:
        await start(platform, effects, chat, untrusted=True)
        await platform.submit("j1", agent="coder", model="chat/m")
        [asked] = await waiting(platform)
        assert (asked.call, asked.why) == ("c2", "tainted")

        await platform.decide("j1", asked.approval_id)

        assert (await platform.wait_for("j1")).answer == "done"
    assert effects.amounts() == [len("look_read done")]


async def test_an_approval_that_its_program_gave_up_is_withdrawn(stage: Stage):
    """One of two calls was denied and nobody caught that: the program is over, and so is the other question."""
    platform = await play_careful(stage, turns(program(TWO_AT_ONCE), Say(text="done")))
    await platform.submit("j1", agent="coder", model="chat/m")
    first, second = await waiting(platform)

    await platform.decide("j1", first.approval_id, "deny")

    assert (await platform.wait_for("j1")).answer == "done"
    ends = {event.call: event.error for event in await platform.events_of("j1", e.ToolCompleted)}
    withdrawn = ends[second.call]
    assert withdrawn is not None and withdrawn.code == "cancelled"
    assert stage.effects.amounts() == []


@pytest.mark.asyncio(loop_scope="function")
async def test_mended_arguments_are_what_a_program_has_approved(platform: Platform, effects: EffectsServer):
    """Nothing knows the type before it runs; without a shared key the program runs again and asks the same."""
    code = "import json\nawait effects__pay_once(amount=json.loads('[\"5\"]')[0])"
    async with ChatServer(turns(program(code), Say(text="done"))) as chat:
        await careful(platform, effects, chat)
        await platform.stop("executor", 0.1)
        await executor(platform, chat, keys=None)
        await platform.submit("j1", agent="coder", model="chat/m")
        [asked] = await waiting(platform)
        assert (asked.arguments, asked.given) == ({"amount": 5}, {"amount": "5"})
        await platform.stop("executor", 0.1)
        await executor(platform, chat, keys=None)

        await platform.decide("j1", asked.approval_id)

        assert (await platform.wait_for("j1")).answer == "done"
    assert effects.amounts() == [5]
