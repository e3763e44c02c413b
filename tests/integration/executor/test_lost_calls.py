"""A call whose holder was killed: noted once, with its bounds, before the step is tried again."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from wayline.chassis import Bus
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.budgets import SettleJob
from wayline.contracts.errors import Unavailable
from wayline.contracts.jobs import Cancel, RaiseBudget
from wayline.executor.adapters.model_providers import ModelProviders
from wayline.executor.hold import signals
from wayline.journal import JobLog
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import ExecutorPlatform, stamp

WORST = Decimal("0.004")


async def killed_in_a_call(platform: ExecutorPlatform, job_id: str) -> None:
    """A log as `kill -9` leaves it, and the ticket that comes again."""
    head = await platform.begin(job_id, ticket=False)
    sequence = await platform.ticket(job_id, head)
    asked = e.ModelRequested(
        **stamp(job_id, 4),
        step=1,
        attempt=1,
        attempt_id=ids.attempt_id("default", job_id, 1, 1),
        provider="chat",
        model="one",
        tools=(),
        worst_usd=WORST,
    )
    # Delivery 0: the ticket's first delivery to the executor that the test starts is a later one.
    await platform.claimed(job_id, head, asked, owner=f"{sequence}:0")


def kinds(events: list[e.Event]) -> list[str]:
    return [event.type for event in events]


async def test_the_next_holder_logs_a_lost_call_and_retries(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="done")) as chat:
        await killed_in_a_call(platform, "j1")
        await platform.executor(chat)

        done = await platform.wait_for("j1")

    events = await platform.events("j1")
    assert kinds(events[2:]) == [
        "job.claimed",
        "model.requested",
        "job.claimed",
        "model.failed",
        "model.requested",
        "model.completed",
        "job.completed",
    ]
    [lost] = await platform.events_of("j1", e.ModelFailed)
    assert (lost.error.code, lost.attempt_id) == ("lost", "default/j1/1/m1")
    assert lost.unsettled == e.Bounds(lower_usd=Decimal(0), upper_usd=WORST)
    assert [attempt for attempt, _ in chat.calls] == ["default/j1/1/m2"]
    assert done.cost_usd == events[-2].cost_usd, "what nobody knows is not in the cost"

    async def settled() -> bool:
        return bool(platform.budgets.of(SettleJob))

    await until(settled, why="the job is settled")
    assert [(one.cost_usd, one.unsettled_usd) for one in platform.budgets.of(SettleJob)] == [(done.cost_usd, WORST)]


async def test_a_cancelled_job_has_its_lost_call_noted_too(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await killed_in_a_call(platform, "j1")
        await platform.signal("j1", Cancel())
        await platform.executor(chat)

        assert (await platform.wait_for("j1")).status == "cancelled"

    assert [lost.attempt_id for lost in await platform.events_of("j1", e.ModelFailed)] == ["default/j1/1/m1"]
    assert chat.calls == []


async def test_to_note_what_was_lost_is_no_progress(platform: ExecutorPlatform):
    """A call that kills each of its holders must still end as a crash loop."""
    go_on = asyncio.Event()
    async with ChatServer(lambda _: Say(text="one two", hold=go_on)) as chat:
        await killed_in_a_call(platform, "j1")
        await platform.executor(chat)
        await until(lambda: bool(chat.calls), why="the model was asked again")

        head = await JobLog(platform.bus, "default", "j1").last()
        go_on.set()
        await platform.wait_for("j1")

    assert head is not None
    assert (head.attempt, [event.type for event in head.events]) == (
        2,
        ["job.claimed", "model.failed", "model.requested"],
    )


async def test_a_call_goes_on_while_signals_cannot_be_read(platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch):
    go_on, asked, newest = asyncio.Event(), list[str](), signals.newest

    async def away_at_first(bus: Bus, tenant: str, job_id: str) -> int:
        asked.append(job_id)
        if len(asked) == 1:
            raise Unavailable("the bus", after_s=0.01)
        return await newest(bus, tenant, job_id)

    async with ChatServer(lambda _: Say(text="one two", hold=go_on)) as chat:
        await platform.executor(chat)
        await platform.begin("j1")
        await until(lambda: bool(chat.calls), why="the model is being asked")
        monkeypatch.setattr(signals, "newest", away_at_first)
        await platform.signal("j1", RaiseBudget(budget_usd=Decimal(5)))
        await until(lambda: len(asked) > 1, why="the job has looked again")
        go_on.set()

        assert (await platform.wait_for("j1")).answer == "one two"

    assert "budget.raised" in kinds(await platform.events("j1"))
    assert [attempt for attempt, _ in chat.calls] == ["default/j1/1/m1"]


async def test_an_answer_arriving_during_a_cancel_costs_its_usage(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    go_on, answered, call, newest = asyncio.Event(), asyncio.Event(), ModelProviders.call, signals.newest

    async def told(*args: Any, **named: Any) -> Any:
        try:
            return await call(*args, **named)
        finally:
            answered.set()

    async def slowly(bus: Bus, tenant: str, job_id: str) -> int:
        sequence = await newest(bus, tenant, job_id)
        if sequence:
            go_on.set()
            await answered.wait()
        return sequence

    monkeypatch.setattr(ModelProviders, "call", told)
    monkeypatch.setattr(signals, "newest", slowly)
    async with ChatServer(lambda _: Say(text="one two", hold=go_on)) as chat:
        await platform.executor(chat)
        await platform.begin("j1")
        await until(lambda: bool(chat.calls), why="the model is being asked")
        await platform.signal("j1", Cancel())
        done = await platform.wait_for("j1")

    assert done.status == "cancelled" and done.cost_usd and done.costs
    assert (await platform.events_of("j1", e.ModelFailed), done.costs.unsettled_calls) == ([], 0)


async def test_a_hurried_stop_logs_a_half_heard_answer(platform: ExecutorPlatform):
    words = " ".join(["word"] * 200)
    async with ChatServer(lambda _: Say(text=words, pace_s=0.02)) as chat:
        first = await platform.executor(chat)
        await platform.begin("j1", max_output_tokens=1_000)
        await platform.until_writing("j1")
        await first.stop(0)

        [lost] = await platform.events_of("j1", e.ModelFailed)

    assert (lost.error.code, lost.attempt_id) == ("lost", "default/j1/1/m1")
    assert lost.retracted_chars > 0
    assert lost.unsettled is not None and lost.unsettled.lower_usd > 0
