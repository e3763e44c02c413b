"""A job that asks a flash model for its type of task: paid for, asked once, and never in the job's way."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from wayline.chassis.providers import Condition, ProviderState, subject
from wayline.chassis.topology import PROVIDERS
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.budgets import ExtendBudget, SettleJob
from wayline.contracts.jobs import Cancel, JobOptions, Route
from wayline.executor.adapters.provider_gates import ProviderGates
from wayline.executor.decide import classification
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until

from .conftest import ExecutorPlatform, stamp

ASIDE = "default/j1/0/a1"
DEAR = Route(provider="chat", model="two", tier="premium", reason="it was classified", task_type="negotiation")
ASKING: dict[str, Any] = {"classifier": "chat/three", "tasks": {"negotiation": DEAR, "search": None}}


def answering(*says: Say, then: str = "done"):
    """What the classifier says, one after another; every other model says `then`."""
    waiting = list(says)
    return lambda body: waiting.pop(0) if body["model"] == "three" else Say(text=then)


def kinds(events: list[e.Event]) -> list[str]:
    return [event.type for event in events]


async def asides(platform: ExecutorPlatform, kind: type[e.Event]) -> list[Any]:
    return [event for event in await platform.events("j1") if isinstance(event, kind)]


async def test_a_classification_reroutes_the_job_and_counts_in_its_cost(platform: ExecutorPlatform):
    async with ChatServer(answering(Say(text="Negotiation."))) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING)

        done = await platform.wait_for("j1")

    assert kinds((await platform.events("j1"))[2:]) == [
        "job.claimed",
        "aux.requested",
        "aux.completed",
        "task.classified",
        "job.rerouted",
        "model.requested",
        "model.completed",
        "job.completed",
    ]
    assert [(attempt, body["model"]) for attempt, body in chat.calls] == [(ASIDE, "three"), ("default/j1/1/m1", "two")]
    [asked], [paid] = await asides(platform, e.AuxiliaryRequested), await asides(platform, e.AuxiliaryCompleted)
    assert (paid.purpose, paid.attempt_id) == (asked.purpose, asked.attempt_id) == ("classification", ASIDE)
    assert 0 < paid.cost_usd < asked.worst_usd
    assert done.costs is not None and done.costs.aux == {"classification": paid.cost_usd}
    assert done.cost_usd == paid.cost_usd + done.costs.model["chat/two"]
    [moved] = await asides(platform, e.JobRerouted)
    assert (moved.cause, moved.route) == ("classification", DEAR)
    assert done.route is not None and done.route.task_type == "negotiation"
    assert asked.trace.span_id == ids.aux_span("default", "j1", ASIDE)


async def test_the_classifiers_text_is_not_streamed(platform: ExecutorPlatform):
    seen: list[bytes] = []

    async def hear(message) -> None:
        seen.append(message.data)

    async with ChatServer(answering(Say(text="search"), then="the answer")) as chat:
        await platform.executor(chat)
        await platform.bus.nc.subscribe("deltas.default.j1", cb=hear)
        await platform.begin("j1", **ASKING)
        await platform.wait_for("j1")
        await until(lambda: b"answer" in b"".join(seen), why="the answer is shown")

    assert b"search" not in b"".join(seen)


@pytest.mark.parametrize(
    ("reply", "why"),
    [("none", "no known type of task fits it"), ("hm", "the answer names no known type of task: 'hm'")],
)
async def test_a_classification_without_a_type_is_paid_and_keeps_the_route(
    platform: ExecutorPlatform, reply: str, why: str
):
    async with ChatServer(answering(Say(text=reply))) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING)

        done = await platform.wait_for("j1")

    [classified] = await asides(platform, e.TaskClassified)
    assert (classified.task_type, classified.reason) == (None, why)
    assert (done.answer, done.route and done.route.model) == ("done", "one")
    assert done.costs is not None and done.costs.aux["classification"]


@pytest.mark.parametrize(
    ("fault", "code", "billable"),
    [
        (Say(status=429, retry_after="1"), "rate_limited", False),
        (Say(status=500), "server_error", False),
        (Say(text="negotiation it is", cut=True), "stream_cut", True),
    ],
    ids=["refused", "broken", "cut"],
)
async def test_a_failed_classification_is_logged_and_not_repeated(
    platform: ExecutorPlatform, fault: Say, code: str, billable: bool
):
    async with ChatServer(answering(fault)) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING)

        done = await platform.wait_for("j1")

    [failed] = await asides(platform, e.AuxiliaryFailed)
    assert (failed.error.code, failed.unsettled is not None) == (code, billable)
    assert [attempt for attempt, _ in chat.calls] == [ASIDE, "default/j1/1/m1"]
    assert (done.answer, done.route and done.route.model) == ("done", "one")
    assert done.costs is not None and done.costs.unsettled_calls == billable
    assert not await asides(platform, e.TaskClassified)


async def test_a_job_waits_only_so_long_for_an_answer(platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(classification, "SECONDS_MAX", 0.2)
    async with ChatServer(answering(Say(text="nego tiation", hold=asyncio.Event()))) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING)

        done = await platform.wait_for("j1")

    [failed] = await asides(platform, e.AuxiliaryFailed)
    assert failed.error.code == "time_limit"
    assert failed.unsettled is not None and failed.unsettled.upper_usd > 0
    assert done.answer == "done"


async def test_a_model_that_asked_to_be_left_alone_is_not_asked(platform: ExecutorPlatform):
    state = ProviderState(until=9e9, condition=Condition.HELD)
    await platform.bus.js.publish(subject("chat/three"), state.model_dump_json().encode(), stream=f"KV_{PROVIDERS}")
    async with ChatServer(answering()) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING)

        done = await platform.wait_for("j1")

    [classified] = await asides(platform, e.TaskClassified)
    assert (classified.task_type, classified.reason) == (None, "chat/three asked to be left alone")
    assert [body["model"] for _, body in chat.calls] == ["one"]
    assert done.cost_usd == (done.costs and done.costs.model["chat/one"])


async def test_a_retry_after_holds_for_later_jobs(platform: ExecutorPlatform):
    async with ChatServer(answering(Say(status=429, retry_after="40"))) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING)
        await platform.wait_for("j1")
        await platform.begin("j2", **ASKING)
        await platform.wait_for("j2")

    assert [body["model"] for _, body in chat.calls] == ["three", "one", "one"]


async def test_the_money_for_the_question_is_held_before_it_is_asked(platform: ExecutorPlatform):
    platform.budgets.grants = 2
    async with ChatServer(answering(Say(text="search"))) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING, held_usd=Decimal(0))

        done = await platform.wait_for("j1")

        async def settled() -> bool:
            return bool(platform.budgets.of(SettleJob))

        await until(settled, why="the job is settled")

    [asked], [paid] = await asides(platform, e.AuxiliaryRequested), await asides(platform, e.AuxiliaryCompleted)
    first, then = platform.budgets.of(ExtendBudget)
    assert (first.attempt_id, first.total_usd) == (ASIDE, asked.worst_usd)
    assert asked.held_usd == asked.worst_usd
    [called] = await asides(platform, e.ModelRequested)
    assert then.total_usd == paid.cost_usd + called.worst_usd
    assert [one.cost_usd for one in platform.budgets.of(SettleJob)] == [done.cost_usd]


async def test_a_classification_beyond_the_budget_is_not_asked(platform: ExecutorPlatform):
    async with ChatServer(answering()) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING, held_usd=Decimal(0))

        done = await platform.wait_for("j1")

    [classified] = await asides(platform, e.TaskClassified)
    assert classified.reason.startswith("budget 'march' has no room for a call of up to $0.0")
    assert chat.calls == []
    assert done.error is not None and done.error.code == "budget_exhausted", "the job itself had no money either"


async def test_a_parking_job_does_not_wait_for_its_classification(platform: ExecutorPlatform):
    async with ChatServer(answering()) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING, held_usd=Decimal(0), options=JobOptions(at_cap="park"))
        await platform.wait_until_parked("j1")

    asked = platform.budgets.of(ExtendBudget)
    assert [(one.attempt_id, one.waits) for one in asked] == [(ASIDE, False), ("default/j1/1/m1", True)]


async def test_a_cancelled_question_is_unsettled_and_the_job_is_cancelled(platform: ExecutorPlatform):
    async with ChatServer(answering(Say(text="nego tiation", hold=asyncio.Event()))) as chat:
        await platform.executor(chat)
        await platform.begin("j1", **ASKING)
        await until(lambda: bool(chat.calls), why="the classifier is writing")
        await platform.signal("j1", Cancel())

        done = await platform.wait_for("j1")

    [failed] = await asides(platform, e.AuxiliaryFailed)
    assert (done.status, failed.error.code, failed.unsettled is not None) == ("cancelled", "cancelled", True)


async def killed_in_the_question(platform: ExecutorPlatform) -> None:
    """A log as `kill -9` leaves it, and the ticket that comes again."""
    head = await platform.begin("j1", **ASKING, ticket=False)
    sequence = await platform.ticket("j1", head)
    asked = e.AuxiliaryRequested(
        **stamp("j1", 4),
        purpose="classification",
        attempt_id=ASIDE,
        provider="chat",
        model="three",
        worst_usd=Decimal("0.004"),
    )
    await platform.claimed("j1", head, asked, owner=f"{sequence}:0")


async def test_a_killed_executors_classification_is_unsettled_and_not_repeated(platform: ExecutorPlatform):
    async with ChatServer(answering()) as chat:
        await killed_in_the_question(platform)
        await platform.executor(chat)

        done = await platform.wait_for("j1")

    assert kinds((await platform.events("j1"))[2:7]) == [
        "job.claimed",
        "aux.requested",
        "job.claimed",
        "aux.failed",
        "model.requested",
    ]
    [lost] = await asides(platform, e.AuxiliaryFailed)
    assert (lost.error.code, lost.unsettled) == ("lost", e.Bounds(lower_usd=Decimal(0), upper_usd=Decimal("0.004")))
    assert [attempt for attempt, _ in chat.calls] == ["default/j1/1/m1"]
    assert done.costs is not None and (done.costs.aux, done.costs.unsettled_calls) == ({}, 1)


async def test_a_hurried_stop_logs_a_half_heard_classification(platform: ExecutorPlatform):
    async with ChatServer(answering(Say(text=" ".join(["word"] * 200), pace_s=0.02))) as chat:
        first = await platform.executor(chat)
        await platform.begin("j1", **ASKING)
        await until(lambda: bool(chat.calls), why="the classifier is writing")
        await first.stop(0)
        await platform.executor(chat)

        done = await platform.wait_for("j1")

    [lost] = await asides(platform, e.AuxiliaryFailed)
    assert (lost.error.code, lost.unsettled is not None) == ("lost", True)
    assert done.answer == "done"
    assert [body["model"] for _, body in chat.calls] == ["three", "one"]


async def test_a_paid_classification_survives_a_stop_right_after_it(
    platform: ExecutorPlatform, monkeypatch: pytest.MonkeyPatch
):
    """After a call others are told how its model is: a hurried stop may fall into that."""
    real, telling = ProviderGates.leave, asyncio.Event()

    async def leave(self: ProviderGates, name: str, **ended: Any) -> None:
        if name == "chat/three":
            telling.set()
            await asyncio.Event().wait()
        await real(self, name, **ended)

    monkeypatch.setattr(ProviderGates, "leave", leave)
    async with ChatServer(answering(Say(text="negotiation"))) as chat:
        service = await platform.executor(chat)
        await platform.begin("j1", **ASKING)
        await asyncio.wait_for(telling.wait(), 10)
        await service.stop(0.1)
        await platform.executor(chat)

        assert (await platform.wait_for("j1")).status == "completed"

    [classified] = await asides(platform, e.TaskClassified)
    assert (classified.task_type, classified.reason) == ("negotiation", "")
    assert [body["model"] for _, body in chat.calls] == ["three", "two"]
