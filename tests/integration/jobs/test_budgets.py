"""Budgets through the bus: several routers decide as one, and whoever waits is woken, whatever happens to them."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.budgets import (
    Budget,
    BudgetConfig,
    BudgetDeleted,
    DeleteBudget,
    ExtendBudget,
    Extended,
    PutBudget,
    Settled,
    SettleJob,
)
from wayline.contracts.jobs import RaiseBudget, Signal, Waiting
from wayline.journal import Head, JobLog
from wayline.router.money.waking import Waker
from wayline.router.settings import Settings as RouterSettings
from wayline.testkit import Platform, until

QUICK = RouterSettings(budgets_every_s=0.05)
SLOW = RouterSettings(budgets_every_s=3_600)


async def extend(platform: Platform, job: str, total: str) -> Extended:
    asked = ExtendBudget(tenant="default", job_id=job, attempt_id=f"default/{job}/1/m1", total_usd=Decimal(total))
    return await platform.bus.ask(asked, Extended)


async def put(platform: Platform, limit: str) -> Budget:
    config = BudgetConfig(limit_usd=Decimal(limit))
    return await platform.bus.ask(PutBudget(tenant="default", name="cap", config=config), Budget)


async def begun(platform: Platform, *jobs: str) -> None:
    for job in jobs:
        await platform.submit(job)
    for job in jobs:
        await platform.wait_until(job, lambda found: found.routing.limits is not None, "the router has begun its log")


async def parked(platform: Platform, job: str) -> Head:
    """Park a job as an executor does that was refused."""
    log = JobLog(platform.bus, "default", job)
    head = await log.last()
    assert head is not None
    ref = e.SpanRef(trace_id=ids.trace_id("default", job), span_id=ids.job_span("default", job))
    place: dict[str, Any] = {"job_id": job, "at": head.events[-1].at, "trace": ref}
    claim = e.JobClaimed(**place, seq=head.seq + 1, executor="x", epoch=1, owner="1:1", attempt=1)
    waiting = Waiting(why="budget", wait_id="b1")
    park = e.JobParked(**place, seq=head.seq + 2, waiting=waiting, signals_seen=0)
    return await log.append([claim, park], head, owner="1:1", attempt=1, epoch=1, signals_seen=0)


async def tickets(platform: Platform, job: str, head: Head) -> int:
    """Run tickets for a job from one of its records."""
    state = (await platform.bus.js.stream_info("RUN")).state
    raw = [await platform.bus.js.get_msg("RUN", n) for n in range(max(1, state.first_seq), state.last_seq + 1)]
    return sum(dict(message.headers or {}).get("Nats-Msg-Id") == f"default/{job}:{head.sequence}" for message in raw)


async def woken(platform: Platform, job: str, head: Head) -> None:
    async def queued() -> bool:
        return await tickets(platform, job, head) == 1

    await until(queued, why=f"{job} has a ticket from the record that parked it")


async def signals(platform: Platform, job: str) -> list[Signal]:
    state = (await platform.bus.js.stream_info("SIGNALS")).state
    raw = [await platform.bus.js.get_msg("SIGNALS", n) for n in range(max(1, state.first_seq), state.last_seq + 1)]
    return [Signal.from_wire(m.data or b"", m.subject or "") for m in raw if (m.subject or "").endswith(f".{job}")]


async def handled(platform: Platform) -> bool:
    consumer = await platform.bus.js.consumer_info("SIGNALS", "router")
    return consumer.num_pending == consumer.num_ack_pending == 0


async def test_sixty_jobs_over_two_routers_on_the_bus_are_thirty_three(platform: Platform):
    await platform.start("router", router=SLOW)
    await platform.start("router", router=SLOW)
    await put(platform, "1.00")
    jobs = [f"j{n}" for n in range(60)]
    await begun(platform, *jobs)

    replies = await asyncio.gather(*(extend(platform, job, "0.03") for job in jobs))

    assert sum(one.granted for one in replies) == 33


async def test_a_raised_budget_wakes_the_longest_waiting_jobs_it_can_pay(platform: Platform):
    await platform.start("router", router=SLOW)
    await put(platform, "0.01")
    await begun(platform, "a", "b", "c")
    heads: dict[str, Head] = {}
    for job in ("b", "a", "c"):
        assert not (await extend(platform, job, "0.04")).granted
        heads[job] = await parked(platform, job)

    await put(platform, "0.08")

    await woken(platform, "b", heads["b"])
    await woken(platform, "a", heads["a"])
    assert await signals(platform, "b") == [Signal(tenant="default", job_id="b", signal=RaiseBudget(by="router"))]
    assert await tickets(platform, "c", heads["c"]) == 0
    assert await signals(platform, "c") == []


async def test_a_budget_that_is_taken_away_wakes_everybody(platform: Platform):
    await platform.start("router", router=SLOW)
    await put(platform, "0.01")
    await begun(platform, "a")
    assert (await extend(platform, "a", "0.04")).limited_by == "cap"
    head = await parked(platform, "a")

    await platform.bus.ask(DeleteBudget(tenant="default", name="cap"), BudgetDeleted)

    await woken(platform, "a", head)


async def test_an_unsignallable_job_does_not_block_later_wake_ups(platform: Platform):
    await platform.start("router", router=SLOW)
    stored = (await platform.bus.js.stream_info("SIGNALS")).config
    await platform.bus.js.update_stream(stored.evolve(max_msgs_per_subject=1))
    await put(platform, "0.01")
    await begun(platform, "a", "b")
    heads: dict[str, Head] = {}
    for job in ("a", "b"):
        assert not (await extend(platform, job, "0.04")).granted
        heads[job] = await parked(platform, job)
    await platform.signal("a", type="budget", budget_usd="1")

    await put(platform, "0.08")

    await woken(platform, "b", heads["b"])


async def test_money_given_back_by_a_job_wakes_a_waiting_one(platform: Platform):
    await platform.start("router", router=QUICK)
    await put(platform, "0.05")
    await begun(platform, "a", "b")
    assert (await extend(platform, "a", "0.04")).granted
    assert not (await extend(platform, "b", "0.04")).granted
    head = await parked(platform, "b")

    await platform.bus.ask(SettleJob(tenant="default", job_id="a", cost_usd=Decimal("0.01")), Settled)

    await woken(platform, "b", head)


async def test_a_router_dead_before_a_wake_up_is_replaced_by_another(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    async def dies(_: Waker) -> int:
        raise ConnectionError("killed")

    await platform.start("router", router=SLOW)
    await put(platform, "0.01")
    await begun(platform, "a")
    await extend(platform, "a", "0.04")
    head = await parked(platform, "a")
    with monkeypatch.context() as patch:
        patch.setattr(Waker, "wake", dies)
        await put(platform, "1.00")
        await platform.stop("router", 0.1)
    assert await tickets(platform, "a", head) == 0

    await platform.start("router", router=SLOW)

    await woken(platform, "a", head)


async def test_a_wake_up_sent_twice_makes_one_run_ticket(platform: Platform):
    """A router that dies between the signal and its note that it was sent is followed by the same signal."""
    await platform.start("router", router=SLOW)
    await put(platform, "0.01")
    await begun(platform, "a")
    await extend(platform, "a", "0.04")
    head = await parked(platform, "a")
    await platform.stop("router", 0.1)
    async with platform.superuser() as conn:
        await conn.execute("UPDATE router.budgets SET limit_usd = 1")
        waits = await conn.fetchrow("SELECT waits_for, waits_usd, waits_since FROM router.reservations")
        for _ in range(2):
            await conn.execute(
                "UPDATE router.reservations SET waits_for = $1, waits_usd = $2, waits_since = $3", *waits.values()
            )
            await platform.start("router", router=SLOW)

            async def noted() -> bool:
                return await conn.fetchval("SELECT waits_for FROM router.reservations") is None

            await until(noted, why="the router has noted that it woke the job")
            await until(lambda: handled(platform), why="the router has handled every signal")
            await platform.stop("router", 0.1)

    assert set(map(Signal.model_dump_json, await signals(platform, "a"))) == {
        Signal(tenant="default", job_id="a", signal=RaiseBudget(by="router")).model_dump_json()
    }
    assert await tickets(platform, "a", head) == 1


async def test_a_job_may_spend_its_raised_budget_once_woken(platform: Platform):
    await platform.start("router", router=SLOW)
    await begun(platform, "a")
    assert (await extend(platform, "a", "0.20")).limited_by == "job"
    head = await parked(platform, "a")

    await platform.signal("a", type="budget", budget_usd="0.30")

    await woken(platform, "a", head)
    assert (await extend(platform, "a", "0.20")).granted


async def test_a_hard_budget_refuses_an_unknown_price_and_logs_why(platform: Platform):
    await platform.start("router", router=SLOW)
    await put(platform, "1.00")

    await platform.submit("j1", model="chat/m")

    ended = await platform.wait_for("j1")
    assert (ended.status, ended.error.code, ended.cost_usd) == ("failed", "price_unknown", 0)
    assert "chat/m" in ended.error.message and "'cap'" in ended.error.message
    await platform.wait_until_empty("SUBMIT")
    assert await platform.dead_letters() == []
    async with platform.superuser() as conn:
        assert await conn.fetchval("SELECT state FROM router.reservations") == "settled"


async def test_a_free_job_runs_though_every_budget_is_used_up(platform: Platform):
    await platform.start("router", "executor", "tool_registry", router=SLOW)
    await put(platform, "0")

    await platform.submit("j1")

    assert (await platform.wait_for("j1")).status == "completed"


async def test_an_alert_is_raised_once_by_several_routers(platform: Platform):
    from prometheus_client import REGISTRY

    def told() -> float:
        return REGISTRY.get_sample_value("wayline_budget_alerts_total", {"tenant": "default", "budget": "cap"}) or 0

    before = told()
    await platform.start("router", router=QUICK)
    await platform.start("router", router=QUICK)
    await put(platform, "0.05")
    await begun(platform, "a")
    await extend(platform, "a", "0.04")

    await until(lambda: told() == before + 1, why="the alert is told")
    used = {"tenant": "default", "budget": "cap", "figure": "reserved"}
    await until(lambda: REGISTRY.get_sample_value("wayline_budget_usd", used) == 0.04, why="the gauge has been read")
    assert told() == before + 1
