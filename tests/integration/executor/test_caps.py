"""A job at its cap: what is asked for before a call, the choice at the cap, and going on without a call repeated."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.contracts.budgets import ExtendBudget, ReleaseBudget, SettleJob
from wayline.contracts.jobs import Expire, JobOptions, RaiseBudget, Waiting
from wayline.executor.run_tickets import Lane
from wayline.simulator.chat_server import ChatServer, Say, turns
from wayline.testkit import until

from .conftest import ExecutorPlatform, stamp

PARK = JobOptions(at_cap="park")
NOTHING = Decimal(0)
UNREADABLE = Say(text="half", tools=(("lookup", {"_unreadable": "{"}),))
"""A turn that needs no registry: such arguments never leave the executor."""


async def test_jobs_that_hold_or_cost_nothing_ask_for_no_budget(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="done")) as chat:
        await platform.executor(chat)
        await platform.begin("free")
        await platform.begin("local", "offline/offline", held_usd=NOTHING)
        await platform.wait_for("free")
        await platform.wait_for("local")

    assert platform.budgets.of(ExtendBudget) == []


async def test_what_was_held_at_once_covers_a_call_without_a_request(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="done")) as chat:
        await platform.executor(chat)
        await platform.begin("j1", held_usd=Decimal(1))

        assert (await platform.wait_for("j1")).status == "completed"

    assert platform.budgets.of(ExtendBudget) == []


async def test_before_a_call_its_worst_case_and_past_spending_are_held(platform: ExecutorPlatform):
    platform.budgets.grants = 2
    async with ChatServer(turns(UNREADABLE, Say(text="done"))) as chat:
        await platform.executor(chat)
        await platform.begin("j1", held_usd=NOTHING)

        assert (await platform.wait_for("j1")).answer == "done"

    first, second = platform.budgets.of(ExtendBudget)
    asked = await platform.events_of("j1", e.ModelRequested)
    completed = await platform.events_of("j1", e.ModelCompleted)
    assert first.total_usd == asked[0].worst_usd == asked[0].held_usd
    assert second.total_usd == completed[0].cost_usd + asked[1].worst_usd
    assert [first.attempt_id, second.attempt_id] == ["default/j1/1/m1", "default/j1/2/m1"]
    assert [completed[0].cost_usd <= asked[0].worst_usd, completed[1].cost_usd <= asked[1].worst_usd] == [True, True]


async def test_at_its_cap_a_job_answers_with_what_it_has(platform: ExecutorPlatform):
    async with ChatServer(turns(UNREADABLE, Say(text="never"))) as chat:
        await platform.executor(chat)
        platform.budgets.grants = 1
        await platform.begin("j1", held_usd=NOTHING)

        done = await platform.wait_for("j1")

    assert (done.status, done.partial, done.answer) == ("completed", True, "half")
    assert len(chat.calls) == 1
    end = (await platform.events("j1"))[-1]
    assert isinstance(end, e.JobCompleted) and "budget 'march' has no room" in (end.reason or "")


async def test_a_job_at_its_cap_without_text_fails_uncalled(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await platform.executor(chat)
        await platform.begin("j1", held_usd=NOTHING)

        done = await platform.wait_for("j1")

    assert done.error is not None and done.error.code == "budget_exhausted"
    assert chat.calls == []
    assert [one.waits for one in platform.budgets.of(ExtendBudget)] == [False]


async def test_a_job_raised_at_its_cap_finishes_repeating_no_call(platform: ExecutorPlatform):
    async with ChatServer(turns(UNREADABLE, Say(text="done"))) as chat:
        await platform.executor(chat)
        platform.budgets.grants = 1
        await platform.begin("j1", options=PARK, held_usd=NOTHING)
        job = await platform.wait_until_parked("j1")
        assert job.life.waiting is not None and job.life.waiting.why == "budget"
        assert len(chat.calls) == 1

        platform.budgets.grants = 1
        await platform.signal("j1", RaiseBudget(budget_usd=Decimal(1)))
        await platform.wake("j1")
        done = await platform.wait_for("j1")

    assert (done.status, done.answer, done.partial) == ("completed", "done", False)
    assert [attempt for attempt, _ in chat.calls] == ["default/j1/1/m1", "default/j1/2/m1"]
    released, (_, refused, granted) = platform.budgets.of(ReleaseBudget), platform.budgets.of(ExtendBudget)
    completed = next(event for event in await platform.events("j1") if isinstance(event, e.ModelCompleted))
    assert [(one.spent_usd, one.seq) for one in released] == [(completed.cost_usd, job.seq)]
    assert refused.attempt_id == granted.attempt_id == "default/j1/2/m1"
    assert granted.cap_usd == 1 and granted.seq > released[0].seq
    assert platform.budgets.of(SettleJob)[0].cost_usd == done.cost_usd


@pytest.mark.parametrize("budget_usd", [Decimal(1), None])
async def test_a_budget_raised_during_its_refusal_is_asked_again(
    platform: ExecutorPlatform, budget_usd: Decimal | None
):
    """Nobody signals it again: a job that had heard of the room and parked would wait for the end of its wait."""
    async with ChatServer(lambda _: Say(text="done")) as chat:
        lane = next(part for part in (await platform.executor(chat)).parts if isinstance(part, Lane))

        async def deciding() -> None:
            await platform.signal("j1", RaiseBudget(budget_usd=budget_usd))
            await until(lambda: lane._by_job["default", "j1"].writer.signals_seen > 0, why="the signal was heard")
            platform.budgets.grants = 1

        platform.budgets.deciding = deciding
        await platform.begin("j1", options=PARK, held_usd=NOTHING)

        await until(lambda: len(chat.calls) == 1, why="the job has asked again, and goes on")
        await platform.wait_for("j1")

    assert [one.cap_usd for one in platform.budgets.of(ExtendBudget)] == [None, budget_usd]


async def test_a_woken_job_whose_budget_has_still_no_room_parks_again(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await platform.executor(chat)
        await platform.begin("j1", options=PARK, held_usd=NOTHING)
        first = await platform.wait_until_parked("j1")

        await platform.signal("j1", RaiseBudget(budget_usd=Decimal(1)))
        await platform.wake("j1")
        await platform.until_parked("j1", times=2)
        again = await platform.wait_until_parked("j1")

    assert again.life.waiting is not None and first.life.waiting is not None
    assert again.life.waiting.wait_id != first.life.waiting.wait_id
    assert chat.calls == []


async def test_an_expired_budget_wait_ends_the_job_partially(platform: ExecutorPlatform):
    async with ChatServer(turns(UNREADABLE, Say(text="never"))) as chat:
        await platform.executor(chat)
        platform.budgets.grants = 1
        await platform.begin("j1", options=PARK, held_usd=NOTHING)
        job = await platform.wait_until_parked("j1")
        assert job.life.waiting is not None and job.life.waiting.expires_at is not None

        await platform.signal("j1", Expire(wait_id=job.life.waiting.wait_id))
        await platform.wake("j1")
        done = await platform.wait_for("j1")

    assert (done.status, done.partial, done.answer) == ("completed", True, "half")


async def test_a_wait_is_scheduled_within_a_second_after_its_expiry(platform: ExecutorPlatform):
    async with ChatServer(lambda _: Say(text="never")) as chat:
        await platform.executor(chat)
        await platform.begin("j1", options=PARK, held_usd=NOTHING)
        waiting = (await platform.wait_until_parked("j1")).life.waiting
        assert waiting is not None and waiting.expires_at is not None
        later = await platform.bus.js.get_last_msg("LATER", f"later.default.j1.{waiting.wait_id}")

    assert later.headers is not None
    at = datetime.fromisoformat(later.headers[h.SCHEDULE].removeprefix("@at "))
    assert timedelta() <= at - waiting.expires_at < timedelta(seconds=1)


async def test_a_redelivered_ticket_of_a_parked_job_releases_its_budget(platform: ExecutorPlatform):
    """The holder died between the park's record and the ack: the ticket comes again, and the rest is done."""
    async with ChatServer(lambda _: Say(text="never")) as chat:
        head = await platform.begin("j1", options=PARK, held_usd=Decimal(1), ticket=False)
        sequence = await platform.ticket("j1", head)
        waiting = Waiting(why="budget", wait_id="w")
        parked = e.JobParked(**stamp("j1", 4), waiting=waiting, signals_seen=0, kept_usd=Decimal("0.25"))
        await platform.claimed("j1", head, parked, owner=f"{sequence}:1")

        await platform.executor(chat)
        await platform.wait_until_parked("j1")

    assert [one.spent_usd for one in platform.budgets.of(ReleaseBudget)] == [Decimal("0.25")]
