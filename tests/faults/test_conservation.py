"""The law of conservation: every call is paid for once, and everybody who knows of money says the same of it."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import AsyncIterator

import httpx2
import orjson
import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.embedded.ports import free_port
from wayline.executor.crash_loops import CRASH_LOOP
from wayline.journal import read_record
from wayline.testkit import until

from .accidents import CLAUDE, DOOM, LATE, Accidents, JobPlan, metered, set_up
from .books import PAYMENT_USD, Books, Call, calls_of, exported
from .conftest import MakePlatform
from .platform import FaultPlatform

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SLOTS = 12
"""Jobs that an executor holds at once."""
DEATHS_MIN = 2
OUTCOMES = {"answered", "refused", "cut", "aborted", "failed"}
GAUGE, UNSETTLED = "wayline_ledger_cost_usd", "wayline_ledger_unsettled_calls"


async def metrics(platform: FaultPlatform) -> dict:
    """Return what tracing exports."""
    async with httpx2.AsyncClient() as client:
        page = await client.get(f"http://127.0.0.1:{platform.tracing_port}/metrics", timeout=10)
    return exported(page.text)


@pytest_asyncio.fixture(loop_scope="module")
async def platform(make_platform: MakePlatform) -> AsyncIterator[FaultPlatform]:
    platform = await make_platform("tracing")
    platform.tracing_port = free_port()
    platform.provider = await platform.simulate(models=metered())
    fleet = platform.fleet
    paid = platform.effects.settings(tools={"pay_once": {"charge": {"usd": str(PAYMENT_USD)}}})
    fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=[paid])
    fleet.set("tracing", WAYLINE_HEALTH_PORT=str(platform.tracing_port), WAYLINE_TRACING_GAUGES_EVERY_S="0.2")
    fleet.set("executor", WAYLINE_EXECUTOR_INTERACTIVE_SLOTS=str(SLOTS))
    for name in ("router", "executor"):
        fleet.set(name, **platform.provider.environment)
    for process in [fleet.spawn(name) for name in ("router", "router", "tool_registry", "tracing")]:
        await process.ready()
    await set_up(platform)
    yield platform
    await fleet.stop()


async def read_books(platform: FaultPlatform, accidents: Accidents) -> tuple[Books, list[e.Event]]:
    """Return what every service says of money, and the events of all jobs, once nothing more happens."""
    bill = platform.provider.bill
    await platform.until_quiet(60)
    await until(
        lambda: {asked.number for asked in platform.provider.requests} <= {charge.number for charge in bill.charges},
        why="every request is on the bill",
    )
    calls: dict[str, Call] = {}
    events: list[e.Event] = []
    for job_id in accidents.plans:
        job_events = [event for record in await platform.records(job_id) for event in read_record(record.data)]
        calls |= calls_of(job_id, job_events)
        events += job_events
    await platform.until_traced(*accidents.plans, within=90)
    failures = [event for event in events if isinstance(event, e.JobFailed)]
    given_up = frozenset(event.job_id for event in failures if event.error.code == CRASH_LOOP)
    acted = Counter(key for tool, key in platform.effects.calls() if key.split("/")[1] in accidents.plans)
    return Books(calls, bill.charges, acted, given_up), events


async def conserve(platform: FaultPlatform, accidents: Accidents, *, within: float) -> None:
    print(f"conservation: WAYLINE_FAULT_SEED={accidents.seed}")
    await accidents.run(within=within)
    books, events = await read_books(platform, accidents)
    outcomes = Counter(charge.outcome for charge in books.charges)
    codes = Counter(call.code for call in books.calls.values() if call.code)
    rerouted = Counter(event.cause for event in events if isinstance(event, e.JobRerouted))
    asides = {event.type.removeprefix("aux.") for event in events if event.type.startswith("aux.")}
    ends = Counter(event.type for event in events if event.type in e.TERMINAL_TYPES)
    print(f"{len(accidents.plans)} jobs {dict(ends)}, {len(books.calls)} calls, {len(books.unsettled)} unsettled")
    print(f"settled {books.total} USD, billed {sum(books.billed.values())} USD, {dict(outcomes)}, {dict(codes)}")
    failed = Counter(event.error.code for event in events if isinstance(event, e.JobFailed))
    print(f"failed {dict(failed)}")
    print(f"rerouted {dict(rerouted)}, {accidents.deaths_seen} executors killed")
    payments = Counter(call.code or "paid" for call in books.calls.values() if call.tool)
    print(f"payments {dict(payments)}")
    unread = [charge for charge in books.charges if charge.usage_delivered and charge.attempt in books.unsettled]
    print(f"{len(unread)} calls told their usage to an executor that was killed before it had written it down")

    await balanced(platform, books)
    assert set(outcomes) >= OUTCOMES, "the run did not meet every accident"
    assert {e.LOST, "cancelled", "stream_cut", "rate_limited"} <= set(codes)
    assert payments["paid"] > 0
    assert rerouted["fallback"] > 0
    assert rerouted["classification"] > 0
    assert asides >= {"completed", "failed"}, "a classification was answered, and one was not"
    assert accidents.deaths_seen >= DEATHS_MIN


async def balanced(platform: FaultPlatform, books: Books) -> None:
    """Check that everybody who knows of money says the same; nothing but a job that was given up is put aside."""
    books.against_the_bill()
    await books.against_tracing(platform)
    await books.against_the_reservations(platform)

    async def shown() -> bool:
        gauges = await metrics(platform)
        return (gauges[GAUGE], gauges[UNSETTLED]) == (books.total, len(books.unsettled))

    await until(shown, within=60, why="the gauges say what the log says")
    letters = await platform.dead_letter_messages()
    assert sorted(((one.headers or {})[h.DEAD_CODE], orjson.loads(one.data or b"")["job"]) for one in letters) == [
        (CRASH_LOOP, job) for job in sorted(books.given_up)
    ]


def seed_of_this_run() -> int:
    return int(os.environ.get("WAYLINE_FAULT_SEED") or random.SystemRandom().randrange(1_000_000))


async def test_forty_jobs_balance_in_every_book_despite_failures_and_kills(platform: FaultPlatform):
    # Always the same draw: it has every accident in it.
    strikes = {"cancel": 3, "kill": 2}
    accidents = Accidents(platform, seed=7, jobs=40, strikes=strikes, deaths=2)
    await conserve(platform, accidents, within=90)


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_the_reservation_of_a_given_up_job_counts_as_unsettled(platform: FaultPlatform):
    accidents = Accidents(platform, seed=7, jobs=LATE + 3, strikes={}, deaths=0, faults=())
    # Its first round is answered and paid for; its second kills every executor that asks.
    accidents.plans["j0"] = JobPlan(CLAUDE[0], rounds=2, strikes_in=1, strike=DOOM)
    await accidents.run(within=150)
    books, _ = await read_books(platform, accidents)

    await balanced(platform, books)
    assert books.given_up == {"j0"}
    assert books.by_job(books.settled)["j0"] > 0, "what is known of it is known in the log alone"
    assert {call.code for call in books.calls.values() if call.job_id == "j0"} == {"", e.LOST, "open"}


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_five_hundred_jobs_balance_in_every_book_despite_failures_and_kills(platform: FaultPlatform):
    strikes = {"cancel": 40, "kill": 12, "stop": 4}
    accidents = Accidents(platform, seed=seed_of_this_run(), jobs=500, strikes=strikes, deaths=10)
    await conserve(platform, accidents, within=600)
