"""A registry that answers that it failed itself has not said whether the tool acted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from wayline.chassis import Ask
from wayline.chassis.responder import Responder
from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import Bug
from wayline.contracts.tools import CallTool, Effect, ListTools, ToolDefinition, ToolList, ToolReply
from wayline.executor.adapters import tool_registry
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.telemetry import BusExporter, Telemetry

from .conftest import Stage

PAYS = turns(Say(tools=(("pay", {}),)), Say(text="It is done."))
AGENT = AgentConfig(tools=("pay",))


@asynccontextmanager
async def registry(stage: Stage, *, effect: Effect, defects: int, timeout_s: float = 60) -> AsyncIterator[list[str]]:
    """A registry that fails so many times, and the keys it was asked for."""
    keys: list[str] = []
    definition = ToolDefinition(name="pay", input_schema={"type": "object"}, effect=effect, timeout_s=timeout_s)

    async def on_list(_: ListTools) -> ToolList:
        return ToolList(tools=(definition,))

    async def on_call(asked: CallTool) -> ToolReply:
        keys.append(asked.key)
        if len(keys) <= defects:
            raise Bug("a promise is broken")
        return ToolReply(status="success", content="paid")

    telemetry = Telemetry("tool_registry", BusExporter("tool_registry"))
    answering = [Responder(stage.bus, telemetry, ask) for ask in (Ask(ListTools, on_list), Ask(CallTool, on_call))]
    for responder in answering:
        await responder.start()
    await stage.bus.settled()
    yield keys
    for responder in answering:
        await responder.stop(0)


@pytest.fixture(autouse=True)
def asked_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_registry, "ASK_AFTER_BUG_S", 0.05)


async def test_a_call_is_repeated_with_its_key_after_a_registry_defect(stage: Stage):
    async with ChatServer(PAYS) as chat, registry(stage, effect=Effect.ONCE, defects=2) as keys:
        await stage.executor(chat)
        await stage.begin("j1", config=AGENT)

        assert (await stage.ended("j1")).answer == "It is done."

    assert keys == ["default/j1/1/1"] * 3
    assert [event.status for event in await stage.events("j1") if isinstance(event, e.ToolCompleted)] == ["success"]


async def test_a_failing_registry_leaves_an_effect_unknown_at_its_deadline(stage: Stage):
    async with ChatServer(PAYS) as chat, registry(stage, effect=Effect.ONCE, defects=10_000, timeout_s=0.2):
        await stage.executor(chat)
        await stage.begin("j1", config=AGENT)
        job = await stage.parked("j1")

    assert job.waiting is not None
    assert job.waiting.why == "needs_decision"
    assert [event for event in await stage.events("j1") if isinstance(event, e.ToolCompleted)] == []


async def test_a_read_that_meets_a_defect_is_refused_at_once(stage: Stage):
    async with ChatServer(PAYS) as chat, registry(stage, effect=Effect.READ, defects=1) as keys:
        await stage.executor(chat)
        await stage.begin("j1", config=AGENT)

        assert (await stage.ended("j1")).answer == "It is done."

    assert len(keys) == 1
    assert [event.status for event in await stage.events("j1") if isinstance(event, e.ToolCompleted)] == ["failed"]
