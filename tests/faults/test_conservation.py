"""The law of conservation: every call is paid for once, and everybody who knows of money says the same of it."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2
import orjson
import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.contracts import headers as h
from wayline.embedded.ports import free_port
from wayline.executor.run_tickets import CRASH_LOOP
from wayline.journal import read_record
from wayline.simulator import Simulator
from wayline.testkit import until

from .books import Books, Call, calls_of, exported
from .conftest import MakeWorld
from .riot import CLAUDE, DOOM, LATE, Fate, Riot, metered, set_up
from .world import World

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SLOTS = 12
"""Jobs that an executor holds at once."""
DEATHS_MIN = 2
OUTCOMES = {"answered", "refused", "cut", "aborted", "failed"}
GAUGE, UNSETTLED = "wayline_ledger_cost_usd", "wayline_ledger_unsettled_calls"


@dataclass
class Town:
    world: World
    provider: Simulator
    tracing_port: int

    async def metrics(self) -> dict:
        async with httpx2.AsyncClient() as client:
            page = await client.get(f"http://127.0.0.1:{self.tracing_port}/metrics", timeout=10)
        return exported(page.text)


@pytest_asyncio.fixture(loop_scope="module")
async def town(make_world: MakeWorld) -> AsyncIterator[Town]:
    world, port = await make_world("tracing"), free_port()
    async with Simulator(models=metered()) as provider:
        world.fleet.set("tool_registry", WAYLINE_TOOL_REGISTRY_SERVERS=[])
        world.fleet.set("tracing", WAYLINE_HEALTH_PORT=str(port), WAYLINE_TRACING_GAUGES_EVERY_S="0.2")
        world.fleet.set("executor", WAYLINE_EXECUTOR_INTERACTIVE_SLOTS=str(SLOTS))
        for name in ("router", "executor"):
            world.fleet.set(name, **provider.environment)
        for process in [world.fleet.spawn(name) for name in ("router", "router", "tool_registry", "tracing")]:
            await process.ready()
        await set_up(world)
        yield Town(world, provider, port)
        await world.fleet.stop()


async def audited(town: Town, riot: Riot) -> tuple[Books, list[e.Event]]:
    """Everything that was said, once nothing more is going to be."""
    world, bill = town.world, town.provider.bill
    await world.until_quiet(60)
    await until(
        lambda: {asked.number for asked in town.provider.requests} <= {charge.number for charge in bill.charges},
        why="every request is on the bill",
    )
    calls: dict[str, Call] = {}
    events: list[e.Event] = []
    for job_id in riot.fates:
        said = [event for record in await world.records(job_id) for event in read_record(record.data)]
        calls |= calls_of(job_id, said)
        events += said
    await world.until_traced(*riot.fates, within=90)
    failures = [event for event in events if isinstance(event, e.JobFailed)]
    given_up = frozenset(event.job_id for event in failures if event.error.code == CRASH_LOOP)
    return Books(calls, bill.charges, given_up), events


async def conserve(town: Town, riot: Riot, *, within: float) -> None:
    print(f"conservation: WAYLINE_FAULT_SEED={riot.seed}")
    await riot.run(within=within)
    books, events = await audited(town, riot)
    outcomes = Counter(charge.outcome for charge in books.charges)
    codes = Counter(call.code for call in books.calls.values() if call.code)
    rerouted = Counter(event.cause for event in events if isinstance(event, e.JobRerouted))
    asides = {event.type.removeprefix("aux.") for event in events if event.type.startswith("aux.")}
    ends = Counter(event.type for event in events if event.type in e.TERMINAL_TYPES)
    print(f"{len(riot.fates)} jobs {dict(ends)}, {len(books.calls)} calls, {len(books.unsettled)} unsettled")
    print(f"settled {books.total} USD, billed {sum(books.billed.values())} USD, {dict(outcomes)}, {dict(codes)}")
    failed = Counter(event.error.code for event in events if isinstance(event, e.JobFailed))
    print(f"failed {dict(failed)}")
    print(f"rerouted {dict(rerouted)}, {riot.deaths_seen} executors killed")
    unread = [charge for charge in books.charges if charge.usage_delivered and charge.attempt in books.unsettled]
    print(f"{len(unread)} calls told their usage to an executor that was killed before it had written it down")

    await balanced(town, books)
    assert set(outcomes) >= OUTCOMES, "the run did not meet every accident"
    assert {e.LOST, "cancelled", "stream_cut", "rate_limited"} <= set(codes)
    assert rerouted["fallback"] > 0
    assert rerouted["classification"] > 0
    assert asides >= {"completed", "failed"}, "a classification was answered, and one was not"
    assert riot.deaths_seen >= DEATHS_MIN


async def balanced(town: Town, books: Books) -> None:
    """Check that everybody who knows of money says the same; nothing but a job that was given up is put aside."""
    books.against_the_bill()
    await books.against_tracing(town.world)
    await books.against_the_reservations(town.world)

    async def shown() -> bool:
        said = await town.metrics()
        return (said[GAUGE], said[UNSETTLED]) == (books.total, len(books.unsettled))

    await until(shown, within=60, why="the gauges say what the log says")
    letters = [
        ((letter.headers or {})[h.DEAD_CODE], orjson.loads(letter.data)) for letter in await town.world.letters()
    ]
    assert sorted((code, body["job"]) for code, body in letters) == [
        (CRASH_LOOP, job) for job in sorted(books.given_up)
    ]


def seed_of_this_run() -> int:
    return int(os.environ.get("WAYLINE_FAULT_SEED") or random.SystemRandom().randrange(1_000_000))


async def test_forty_jobs_balance_in_every_book_despite_failures_and_kills(town: Town):
    # Always the same draw: it has every accident in it.
    strikes = {"cancel": 3, "kill": 2}
    riot = Riot(town.world, town.provider, seed=7, jobs=40, strikes=strikes, deaths=2)
    await conserve(town, riot, within=90)


@pytest.mark.timeout(240)
async def test_the_reservation_of_a_given_up_job_counts_as_unsettled(town: Town):
    riot = Riot(town.world, town.provider, seed=7, jobs=LATE + 3, strikes={}, deaths=0, faults=())
    # Its first round is answered and paid for; its second kills every executor that asks.
    riot.fates["j0"] = Fate(CLAUDE[0], rounds=2, strikes_in=1, strike=DOOM)
    await riot.run(within=150)
    books, _ = await audited(town, riot)

    await balanced(town, books)
    assert books.given_up == {"j0"}
    assert books.by_job(books.settled)["j0"] > 0, "what is known of it is known in the log alone"
    assert {call.code for call in books.calls.values() if call.job_id == "j0"} == {"", e.LOST, "open"}


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_five_hundred_jobs_balance_in_every_book_despite_failures_and_kills(town: Town):
    strikes = {"cancel": 40, "kill": 12, "stop": 4}
    riot = Riot(town.world, town.provider, seed=seed_of_this_run(), jobs=500, strikes=strikes, deaths=10)
    await conserve(town, riot, within=600)
