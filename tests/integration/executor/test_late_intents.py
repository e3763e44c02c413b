"""Calls that only read share one record with their ends; the intent of any other is in the log before it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal

import pytest

from wayline.chassis import Ask
from wayline.contracts.agents import AgentConfig
from wayline.contracts.jobs import Cancel
from wayline.contracts.tool_charges import ToolCharge
from wayline.contracts.tools import (
    CallTool,
    Effect,
    ListTools,
    ToolDefinition,
    ToolError,
    ToolList,
    ToolReply,
    VoidTool,
)
from wayline.executor.perform import tool_calls
from wayline.journal import JobLog
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import until

from .conftest import ExecutorPlatform

FOR_EVER_S = 60.0
LOOKS = AgentConfig(tools=("look",))
SCRIPT = turns(Say(tools=(("look", {"at": 1}), ("look", {"at": 2}))), Say(text="seen"))
ANSWERED = ToolReply(status="success", content="blue")
OnCall = Callable[[CallTool], Awaitable[ToolReply]]


async def offer(platform: ExecutorPlatform, on_call: OnCall, **definition: object) -> None:
    """Answer as a registry of one tool, `look`, which only reads unless its definition says more."""
    look = ToolDefinition(
        **{"name": "look", "input_schema": {"type": "object"}, "effect": Effect.READ, **definition}  # type: ignore[arg-type]
    )

    async def on_list(_: ListTools) -> ToolList:
        return ToolList(tools=(look,))

    async def on_void(_: VoidTool) -> ToolReply:
        return ToolReply(status="failed", error=ToolError(code="cancelled", message="it never began"))

    await platform.answer(Ask(ListTools, on_list), Ask(CallTool, on_call), Ask(VoidTool, on_void))


async def prove_free(platform: ExecutorPlatform, job_id: str = "first") -> None:
    """Have the tool called once by an executor that runs: it is known then to report no charge."""
    await platform.begin(job_id, config=LOOKS)
    assert (await platform.wait_for(job_id)).answer == "seen"


async def records(platform: ExecutorPlatform, job_id: str) -> list[list[str]]:
    """Return the types of the events of each record."""
    return [[value["type"] for value in record] for record in await JobLog(platform.bus, "default", job_id).records()]


def late(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(tool_calls, "LATE_S", seconds)


async def test_reading_calls_share_one_record_with_what_follows(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    late(monkeypatch, FOR_EVER_S)

    async def on_call(_: CallTool) -> ToolReply:
        return ANSWERED

    await offer(platform, on_call)
    async with ChatServer(SCRIPT) as chat:
        await platform.executor(chat)
        await prove_free(platform)
        await platform.begin("reads", config=LOOKS)
        assert (await platform.wait_for("reads")).answer == "seen"

    called = ["tool.requested"] * 2 + ["tool.completed"] * 2
    assert (await records(platform, "reads"))[2] == ["model.completed", *called, "model.requested"]


async def test_a_read_that_may_charge_is_logged_before_it_begins(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    late(monkeypatch, FOR_EVER_S)
    replies = iter([ANSWERED.model_copy(update={"cost_usd": cost}) for cost in (None, Decimal("0.02"), None)])
    known: list[bool] = []

    async def on_call(ask: CallTool) -> ToolReply:
        known.append(await requested(platform, ask.job_id))
        return next(replies)

    await offer(platform, on_call)
    async with ChatServer(turns(Say(tools=(("look", {"at": 1}),)), Say(text="seen"))) as chat:
        await platform.executor(chat)
        for job_id in ("unknown", "free", "charged"):
            await prove_free(platform, job_id)

    assert known == [True, False, True]


async def test_a_call_that_an_earlier_executor_may_have_made_says_so(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    late(monkeypatch, FOR_EVER_S)
    begun, asked_before = asyncio.Event(), list[bool]()

    async def on_call(ask: CallTool) -> ToolReply:
        asked_before.append(ask.asked_before)
        if len(asked_before) == 1:
            begun.set()
            await asyncio.Event().wait()
        return ANSWERED

    await offer(platform, on_call)
    async with ChatServer(turns(Say(tools=(("look", {"at": 1}),)), Say(text="seen"))) as chat:
        first = await platform.executor(chat)
        await platform.begin("moves", config=LOOKS)
        await asyncio.wait_for(begun.wait(), FOR_EVER_S)
        await first.stop(0.1)
        await platform.executor(chat)
        assert (await platform.wait_for("moves")).answer == "seen"

    assert asked_before == [False, True]


async def test_a_slow_reading_call_is_in_the_log_meanwhile(platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch):
    late(monkeypatch, 0.001)

    async def on_call(_: CallTool) -> ToolReply:
        await until(lambda: requested(platform, "slow"), why="the calls are in the log")
        return ANSWERED

    await offer(platform, on_call)
    async with ChatServer(SCRIPT) as chat:
        await platform.executor(chat)
        await platform.begin("slow", config=LOOKS)
        assert (await platform.wait_for("slow")).answer == "seen"


async def requested(platform: ExecutorPlatform, job_id: str) -> bool:
    return any("tool.requested" in record for record in await records(platform, job_id))


@pytest.mark.parametrize(
    "definition",
    [
        {"effect": Effect.ONCE},
        {"effect": Effect.IDEMPOTENT},
        {"effect": Effect.RECONCILE},
        {"charge": ToolCharge(usd=Decimal("0.01"))},
        {"ask": "always"},
    ],
    ids=["once", "idempotent", "reconcile", "charged", "approved"],
)
async def test_any_other_call_is_in_the_log_before_it_begins(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch, definition: dict[str, object]
):
    late(monkeypatch, FOR_EVER_S)
    known: list[bool] = []

    async def on_call(_: CallTool) -> ToolReply:
        known.append(await requested(platform, "acts"))
        return ANSWERED

    await offer(platform, on_call, **definition)
    async with ChatServer(turns(Say(tools=(("look", {"at": 1}),)), Say(text="seen"))) as chat:
        await platform.executor(chat)
        await platform.begin("acts", config=LOOKS)
        if definition.get("ask"):
            [asked] = (await platform.wait_until_parked("acts")).tools.pending
            await platform.decide("acts", asked.approval_id)
            await platform.wake("acts")
        assert (await platform.wait_for("acts")).answer == "seen"

    assert known == [True]


async def test_a_cancel_meanwhile_settles_the_reading_calls(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    late(monkeypatch, FOR_EVER_S)
    begun = asyncio.Event()

    async def on_call(ask: CallTool) -> ToolReply:
        if ask.job_id == "first":
            return ANSWERED
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    await offer(platform, on_call)
    async with ChatServer(SCRIPT) as chat:
        await platform.executor(chat)
        await prove_free(platform)
        await platform.begin("stopped", config=LOOKS)
        await asyncio.wait_for(begun.wait(), FOR_EVER_S)
        await platform.signal("stopped", Cancel(reason="enough"))
        job = await platform.wait_for("stopped")

    types = [event.type for event in await platform.events("stopped")]
    assert job.status == "cancelled"
    assert types.index("model.completed") < types.index("tool.requested") < types.index("tool.completed")
    assert types[-1] == "job.cancelled"


async def test_a_hand_back_meanwhile_keeps_the_paid_answer(platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch):
    late(monkeypatch, FOR_EVER_S)
    begun, answer = asyncio.Event(), asyncio.Event()

    async def on_call(ask: CallTool) -> ToolReply:
        if ask.job_id != "first":
            begun.set()
            await answer.wait()
        return ANSWERED

    await offer(platform, on_call)
    async with ChatServer(SCRIPT) as chat:
        first = await platform.executor(chat)
        await prove_free(platform)
        await platform.begin("moves", config=LOOKS)
        await asyncio.wait_for(begun.wait(), FOR_EVER_S)
        await first.stop(5)
        answer.set()
        await platform.executor(chat)
        assert (await platform.wait_for("moves")).answer == "seen"

        assert len(chat.calls) == 4
