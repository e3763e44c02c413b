"""A registry that answers that it failed itself has not said whether the tool acted."""

from __future__ import annotations

import pytest

from wayline.chassis import Ask
from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import Bug
from wayline.contracts.tools import CallTool, Effect, ListTools, ToolDefinition, ToolList, ToolReply
from wayline.executor.adapters import tool_registry
from wayline.simulator.chat_server import ChatServer, Say, turns

from .conftest import ExecutorPlatform

PAYS = turns(Say(tools=(("pay", {}),)), Say(text="It is done."))
AGENT = AgentConfig(tools=("pay",))


async def registry(platform: ExecutorPlatform, *, effect: Effect, defects: int, timeout_s: float = 60) -> list[str]:
    """Answer as a registry that fails so many times, and return the keys it is asked for."""
    keys: list[str] = []
    definition = ToolDefinition(name="pay", input_schema={"type": "object"}, effect=effect, timeout_s=timeout_s)

    async def on_list(_: ListTools) -> ToolList:
        return ToolList(tools=(definition,))

    async def on_call(asked: CallTool) -> ToolReply:
        keys.append(asked.key)
        if len(keys) <= defects:
            raise Bug("a promise is broken")
        return ToolReply(status="success", content="paid")

    await platform.answer(Ask(ListTools, on_list), Ask(CallTool, on_call))
    return keys


@pytest.fixture(autouse=True)
def asked_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_registry, "ASK_AFTER_BUG_S", 0.05)


async def test_a_call_is_repeated_with_its_key_after_a_registry_defect(platform: ExecutorPlatform):
    keys = await registry(platform, effect=Effect.ONCE, defects=2)
    async with ChatServer(PAYS) as chat:
        await platform.executor(chat)
        await platform.begin("j1", config=AGENT)

        assert (await platform.wait_for("j1")).answer == "It is done."

    assert keys == ["default/j1/1/1"] * 3
    assert [event.status for event in await platform.events_of("j1", e.ToolCompleted)] == ["success"]


async def test_a_failing_registry_leaves_an_effect_unknown_at_its_deadline(platform: ExecutorPlatform):
    await registry(platform, effect=Effect.ONCE, defects=10_000, timeout_s=0.2)
    async with ChatServer(PAYS) as chat:
        await platform.executor(chat)
        await platform.begin("j1", config=AGENT)
        job = await platform.wait_until_parked("j1")

    assert job.life.waiting is not None
    assert job.life.waiting.why == "needs_decision"
    assert await platform.events_of("j1", e.ToolCompleted) == []


async def test_a_read_that_meets_a_defect_is_refused_at_once(platform: ExecutorPlatform):
    keys = await registry(platform, effect=Effect.READ, defects=1)
    async with ChatServer(PAYS) as chat:
        await platform.executor(chat)
        await platform.begin("j1", config=AGENT)

        assert (await platform.wait_for("j1")).answer == "It is done."

    assert len(keys) == 1
    assert [event.status for event in await platform.events_of("j1", e.ToolCompleted)] == ["failed"]
