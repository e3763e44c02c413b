"""Programs of jobs that meet a limit, an exhausted budget, or their own past that differs."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import pytest

from wayline.contracts import events as e
from wayline.contracts.models import ModelCard, PutModel
from wayline.executor import app
from wayline.executor.perform import run_program
from wayline.executor.prompt.programs import code_of
from wayline.router.settings import Settings as RouterSettings
from wayline.sandbox import Limits
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import Platform, until
from wayline.testkit.effects_server import EffectsServer

from .conftest import until_listed, with_tools
from .test_code import PAY_THREE, executor, program, start
from .test_paid_tools import CARD

# Its calls come first: however busy the machine is, it makes both before it computes for long.
COMPUTES = """
for n in range(2):
    await effects__look_read(query=str(n))
total = 0
while True:
    total += 1
"""
CALLS_ON = """
for n in range(9):
    await effects__look_read(query=str(n))
"""
PAYS_TWICE = """
paid = []
for n in range(2):
    try:
        paid.append(await effects__pay_once(amount=n))
    except RuntimeError as error:
        paid.append(str(error))
paid
"""


async def completed(platform: Platform) -> e.CodeCompleted:
    """Return how the only program of `j1` ended, once the job has."""
    assert (await platform.wait_for("j1")).answer == "done"
    [found] = await platform.events_of("j1", e.CodeCompleted)
    return found


@pytest.mark.parametrize(
    ("code", "limits", "delay_ms", "calls_min", "why"),
    [
        (COMPUTES, Limits(execution_s_max=1.0), 1_100, 2, "feed time limit exceeded"),
        (CALLS_ON, Limits(calls_max=3), 0, 3, "it asks for more than 3 calls"),
    ],
    ids=["time", "calls"],
)
async def test_a_program_at_its_limit_is_stopped_and_its_model_told(
    *,
    platform: Platform,
    effects: EffectsServer,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    limits: Limits,
    delay_ms: int,
    calls_min: int,
    why: str,
):
    monkeypatch.setattr(app, "ProgramLimits", lambda **_: limits)
    # One call takes more than the limit, which is of what the program computes alone.
    effects.delay_ms = delay_ms
    async with ChatServer(turns(program(code), Say(text="done"))) as chat:
        await start(platform, effects, chat)
        await platform.submit("j1", agent="coder", model="chat/m")

        ended = await completed(platform)

    shown = chat.calls[1][1]["messages"][-1]["content"]
    assert (ended.status, {call.status for call in ended.calls}) == ("stopped", {"success"})
    assert len(ended.calls) >= calls_min
    assert why in shown
    assert f"[{len(ended.calls)} calls of the program were made; they are not undone.]" in shown
    assert effects.count("look_read") == len(ended.calls)


async def test_a_programs_paid_call_beyond_the_budget_is_refused(platform: Platform, effects: EffectsServer):
    async with ChatServer(turns(program(PAYS_TWICE), Say(text="done"))) as chat:
        await effects.start()
        tools = with_tools(effects.settings(tools={"pay_once": {"charge": {"usd": "0.01"}}}))
        await platform.start(
            "router", "tool_registry", router=RouterSettings(chat_base_url=chat.url), tool_registry=tools
        )
        await until_listed(platform, "effects__pay_once")
        await platform.bus.ask(PutModel(tenant="default", card=CARD), ModelCard)
        await platform.put_agent("coder", code=True, tools=["effects__*"], ask="never")
        await executor(platform, chat)
        await platform.submit("j1", agent="coder", model="chat/m", budget_usd="0.015")

        ended = await completed(platform)

    assert [(call.call, call.status) for call in ended.calls] == [("c1", "success"), ("c2", "failed")]
    assert "effects__pay_once was not called" in chat.calls[1][1]["messages"][-1]["content"]
    assert effects.amounts() == [0]
    assert (await platform.wait_for("j1")).costs.tool == {"effects__pay_once": Decimal("0.01")}


async def test_a_program_that_diverges_is_settled_and_calls_nothing(
    platform: Platform, effects: EffectsServer, monkeypatch: pytest.MonkeyPatch
):
    effects.delay_ms = 400
    async with ChatServer(turns(program(PAY_THREE), Say(text="done"))) as chat:
        await start(platform, effects, chat, keys=None)
        await platform.submit("j1", agent="coder", model="chat/m")
        await until(lambda: effects.has_begun("pay_once", "default/j1/1/c2"), why="the second call began")
        await platform.stop("executor", 0.1)
        acted = partial(effects.count, "pay_once", "default/j1/1/c2")
        await until(acted, why="the second call, which goes on in the registry, has acted")
        # As though the log had other arguments of the first call than the program gives it.
        monkeypatch.setattr(run_program, "code_of", lambda call: code_of(call).replace("amount=n", "amount=n + 1"))
        await executor(platform, chat, keys=None)

        ended = await completed(platform)

    assert ended.status == "diverged"
    assert [(call.call, call.status) for call in ended.calls] == [("c1", "success"), ("c2", "success")]
    assert effects.calls() == [("pay_once", f"default/j1/1/c{n}") for n in (1, 2)]
    assert "is given other arguments than recorded" in chat.calls[1][1]["messages"][-1]["content"]
    types = [event.type for event in await platform.events("j1")]
    assert types.count("tool.completed") == types.count("tool.requested") == 3
