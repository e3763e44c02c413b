"""Whatever a job is parked for, no signal is forgotten: come before it parks, while it does, or after."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import product
from typing import Any, Literal, get_args

import orjson
import pytest

from wayline.chassis.controls import Controls
from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.jobs import Answer, Cancel, Expire, RaiseBudget, Steer, Waiting
from wayline.executor.adapters.budgets import Budgets
from wayline.executor.adapters.children import Children
from wayline.executor.adapters.permits import Permits
from wayline.executor.adapters.session_histories import SessionHistories
from wayline.executor.perform.follow_up import FollowUp
from wayline.journal import Head, JobLog
from wayline.testkit import Platform, until

Moment = Literal["before", "while", "after"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)
REASONS = get_args(Waiting.model_fields["why"].annotation)
BY_EXECUTORS = [why for why in REASONS if why != "turn"]
SIGNALS: dict[str, Any] = {
    "cancel": Cancel(reason="enough"),
    "answer": Answer(decision_id="w1", outcome="failed"),
    "budget": RaiseBudget(),
    "expire": Expire(wait_id="w1"),
    "steer": Steer(by="later"),
}
WAKING = set(SIGNALS) - {"steer"}
"""A parked job hears words for it when something else lets it go on."""


async def test_a_signal_wakes_a_parked_job_whenever_it_comes(platform: Platform):
    await platform.start("router")
    walk = list(product(BY_EXECUTORS, SIGNALS, MOMENTS))
    jobs = {f"j{n}": step for n, step in enumerate(walk)}
    await asyncio.gather(*(platform.submit(job) for job in jobs))

    await signal_at(platform, jobs, "before")
    parked = await asyncio.gather(*(park(platform, job, why) for job, (why, _, _) in jobs.items()))
    heads = dict(zip(jobs, parked, strict=True))
    await asyncio.gather(
        signal_at(platform, jobs, "while"), *(let_go(platform, job, head) for job, head in heads.items())
    )
    await signal_at(platform, jobs, "after")

    needed = {f"default/{job}:{heads[job].sequence}" for job, (_, kind, _) in jobs.items() if kind in WAKING}
    await tickets_hold(platform, needed)


async def test_a_cancel_wakes_a_job_before_its_turn_whenever_it_comes(platform: Platform):
    await platform.start("router")
    jobs = {f"j{n}": ("turn", *step) for n, step in enumerate(product(SIGNALS, MOMENTS))}
    await asyncio.gather(*(submit_turn(platform, f"first-{job}", session=job) for job in jobs))
    await asyncio.gather(*(begun(platform, f"first-{job}") for job in jobs))

    await signal_at(platform, jobs, "before")
    await asyncio.gather(signal_at(platform, jobs, "while"), *(submit_turn(platform, job, session=job) for job in jobs))
    heads = {job: await begun(platform, job) for job in jobs}
    await signal_at(platform, jobs, "after")

    await platform.wait_until_empty("SUBMIT")
    wakes = {job: f"default/{job}:{head.sequence}" for job, head in heads.items()}
    await tickets_hold(platform, {wakes[job] for job, (_, kind, _) in jobs.items() if kind == "cancel"})
    others = {wakes[job] for job, (_, kind, _) in jobs.items() if kind != "cancel"}
    assert others & await tickets(platform) == set(), "they are read when the turn has come"


async def test_a_signal_found_while_parking_waits_for_the_tenants_turn(platform: Platform):
    await platform.start("router")
    await asyncio.gather(platform.submit("first"), platform.submit("second"))
    parked = await asyncio.gather(park(platform, "first", "approval"), park(platform, "second", "approval"))
    for job, head in zip(("first", "second"), parked, strict=True):
        await platform.signal(job, SIGNALS["cancel"])
        await let_go(platform, job, head)

    state = (await platform.bus.js.stream_info("RUN", subjects_filter=">")).state
    assert state.subjects == {"jobs.run.interactive.default": 1, "jobs.run.interactive_backlog.default": 3}


async def test_a_signal_found_while_parking_wakes_without_a_router(platform: Platform):
    await platform.start("router")
    await platform.submit("j1")
    head = await park(platform, "j1", "approval")
    await platform.stop("router")
    await platform.signal("j1", SIGNALS["cancel"])

    await let_go(platform, "j1", head)

    await tickets_hold(platform, {f"default/j1:{head.sequence}"})


async def test_a_signal_found_while_parking_wakes_without_the_right_to_ask(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    await platform.start("router")
    await platform.submit("j1")
    head = await park(platform, "j1", "approval")
    await platform.stop("router")
    await platform.signal("j1", SIGNALS["cancel"])
    # As on a bus whose rights are of the version before.
    monkeypatch.setitem(platform.bus.denied, "jobs.wake.default", "permissions violation")

    await let_go(platform, "j1", head)

    await tickets_hold(platform, {f"default/j1:{head.sequence}"})


async def test_the_end_of_a_wait_signals_no_ended_or_unknown_job(platform: Platform):
    await platform.start("router")
    await platform.submit("ended", dry_run=True)
    await platform.submit("queued")
    for job in ("ended", "queued"):
        await begun(platform, job)

    for job in ("ended", "gone", "queued"):
        await platform.bus.js.publish(f"due.default.{job}.w1", b"{}")

    async def signalled() -> set[str]:
        state = (await platform.bus.js.stream_info("SIGNALS", subjects_filter=">")).state
        return set(state.subjects or {})

    async def handled() -> bool:
        consumer = await platform.bus.js.consumer_info("LATER", "router")
        return consumer.num_pending == consumer.num_ack_pending == 0 and bool(await signalled())

    await until(handled, why="the router has handled the ends of the waits")
    assert await signalled() == {"signals.default.queued"}


async def signal_at(platform: Platform, jobs: Mapping[str, tuple[str, str, Moment]], now: Moment) -> None:
    """Signal the jobs that are signalled at this moment; the router has handled it, except while they park."""
    await asyncio.gather(
        *(platform.signal(job, SIGNALS[kind]) for job, (_, kind, moment) in jobs.items() if moment == now)
    )

    async def handled() -> bool:
        consumer = await platform.bus.js.consumer_info("SIGNALS", "router")
        return consumer.num_pending == consumer.num_ack_pending == 0

    if now != "while":
        await until(handled, why="the router has handled the signals")


async def begun(platform: Platform, job: str) -> Head:
    found: list[Head] = []

    async def there() -> bool:
        head = await JobLog(platform.bus, "default", job).last()
        found.extend([] if head is None else [head])
        return head is not None

    await until(there, why=f"{job} has a log")
    return found[-1]


async def park(platform: Platform, job: str, why: str) -> Head:
    """Append what an executor appends that has claimed a job and parks it."""
    head = await begun(platform, job)
    span = e.SpanRef(trace_id=ids.trace_id("default", job), span_id=ids.job_span("default", job))
    place: dict[str, Any] = {"job_id": job, "at": head.events[-1].at, "trace": span}
    claim = e.JobClaimed(**place, seq=head.seq + 1, executor="x", epoch=1, owner="1:1", attempt=1)
    waiting = Waiting.model_validate({"why": why, "wait_id": "w1", "children": [f"{job}-c"] * (why == "children")})
    parked = e.JobParked(**place, seq=head.seq + 2, waiting=waiting, signals_seen=0)
    return await JobLog(platform.bus, "default", job).append(
        [claim, parked], head, owner="1:1", attempt=1, epoch=1, signals_seen=0
    )


async def let_go(platform: Platform, job: str, head: Head) -> None:
    """Do what an executor does after the record, before it drops its ticket."""
    bus, [*_, last] = platform.bus, await platform.events(job)
    after = FollowUp(
        bus, Budgets(bus), SessionHistories(bus, kept_max_bytes=0), Children(bus), Permits(bus, Controls(bus))
    )
    assert isinstance(last, e.JobParked)
    await after.parked("default", head, last)


async def submit_turn(platform: Platform, job: str, *, session: str) -> None:
    body = {"agent": "assistant", "input": "go", "job_id": job, "session_id": f"s-{session}"}
    await platform.publish(orjson.dumps(body))


async def tickets(platform: Platform) -> set[str]:
    """Return the ids of all tickets in the queue."""
    state = (await platform.bus.js.stream_info("RUN")).state
    raw = await asyncio.gather(
        *(platform.bus.js.get_msg("RUN", n) for n in range(max(1, state.first_seq), state.last_seq + 1))
    )
    return {dict(message.headers or {}).get("Nats-Msg-Id", "") for message in raw}


async def tickets_hold(platform: Platform, needed: set[str]) -> None:
    async def all_there() -> bool:
        return needed <= await tickets(platform)

    await until(all_there, why="each job that has something to read is queued")
