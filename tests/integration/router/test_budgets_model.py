"""Whatever is asked in whatever order, the tables say what a few lines of Python say."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from wayline.contracts.agents import AgentConfig
from wayline.contracts.budgets import Budget, DeleteBudget, ListBudgets
from wayline.router.app import SCHEMA, migrations
from wayline.store import Store
from wayline.testkit import Database
from wayline.testkit.walks import examples, seeds

from .conftest import NOON, PASSWORD, ROLE, TENANT, Clock, Office

NOTHING = Decimal(0)
DEFAULT = Decimal("0.10")
EVER = datetime.min.replace(tzinfo=UTC)

USD = st.integers(1, 12).map(lambda cents: Decimal(cents) / 100)
LIMITS = st.integers(0, 30).map(lambda cents: Decimal(cents) / 100)
# Mostly a number: what is unknown soon says the same again.
SOME = st.one_of(USD, USD, USD, USD, st.none())
CAPS = st.sampled_from([None, None, None, Decimal("0.05")])
NAMES = st.sampled_from(["alpha", "beta", "gamma"])
AGENTS = st.sampled_from(["assistant", "critic"])
USERS = st.sampled_from([None, "alice", "bob"])
RECENT = st.integers(1, 4)
"""Which of the newest jobs is meant: old ones have ended, and nothing happens to them any more."""


@dataclass
class Limit:
    """A budget as the model has it."""

    limit: Decimal
    window: str
    agent: str | None
    user: str | None
    hard: bool

    def counts(self, job: Held) -> bool:
        return self.window != "job" and self.agent in (None, job.agent) and self.user in (None, job.user)

    def start(self, at: datetime) -> datetime:
        if self.window == "total":
            return EVER
        at = at.replace(minute=0, second=0, microsecond=0)
        return at if self.window == "hour" else at.replace(hour=0)


@dataclass
class Held:
    """A job as the model has it."""

    agent: str
    user: str | None
    cap: Decimal
    cap_set: bool
    at: datetime
    held: Decimal = NOTHING
    open: bool = True
    cost: Decimal | None = NOTHING
    unsure: Decimal = NOTHING
    parts: dict[str, dict[datetime, Decimal]] = field(default_factory=dict)


@dataclass
class Counter:
    spent: Decimal = NOTHING
    reserved: Decimal = NOTHING
    unsettled: Decimal = NOTHING
    jobs: int = 0

    @property
    def used(self) -> Decimal:
        return self.spent + self.reserved + self.unsettled


class Model:
    """What the tables should say."""

    def __init__(self) -> None:
        self.limits: dict[str, Limit] = {}
        self.jobs: dict[str, Held] = {}
        self.counters: dict[tuple[str, datetime], Counter] = {}

    def counter(self, name: str, start: datetime) -> Counter:
        return self.counters.setdefault((name, start), Counter())

    def of(self, job: Held) -> list[tuple[str, Limit]]:
        return [(name, limit) for name, limit in sorted(self.limits.items()) if limit.counts(job)]

    def admit(self, job_id: str, agent: str, user: str | None, cap: Decimal | None, at: datetime) -> None:
        each = [
            limit.limit
            for limit in self.limits.values()
            if limit.window == "job" and limit.agent in (None, agent) and limit.user in (None, user)
        ]
        chosen = min((usd for usd in (cap, *each) if usd is not None), default=None)
        own = DEFAULT if chosen is None else chosen
        self.jobs.setdefault(job_id, Held(agent, user, own, chosen is not None, at))

    def extend(self, job: Held, total: Decimal | None, cap: Decimal | None, at: datetime) -> tuple[bool, str]:
        if not job.open:
            return False, "ended"
        job.cap, job.cap_set = (job.cap, job.cap_set) if cap is None else (cap, True)
        rooms = sorted(
            (limit.limit - self.counter(name, limit.start(at)).used, name) for name, limit in self.of(job) if limit.hard
        )
        refused = ""
        need = max((total or NOTHING) - job.held, NOTHING)
        if total is None:
            refused = "job" if job.cap_set else rooms[0][1] if rooms else ""
        elif need and total > job.cap:
            refused = "job"
        elif need and rooms and need > rooms[0][0]:
            refused = rooms[0][1]
        if refused or total is None or not need:
            return not refused, refused
        for name, limit in self.of(job):
            start = limit.start(at)
            self.counter(name, start).reserved += need
            parts = job.parts.setdefault(name, {})
            parts[start] = parts.get(start, NOTHING) + need
        job.held = total
        return True, ""

    def release(self, job: Held, spent: Decimal) -> Decimal:
        if not job.open or job.held <= spent:
            return NOTHING
        for name, parts in job.parts.items():
            left = spent
            for start in sorted(parts):
                keeps = min(parts[start], left)
                left -= keeps
                self.counter(name, start).reserved -= parts[start] - keeps
                parts[start] = keeps
        job.parts = {name: {s: usd for s, usd in parts.items() if usd} for name, parts in job.parts.items()}
        job.held, given = spent, job.held - spent
        return given

    def settle(self, job: Held, cost: Decimal | None, unsure: Decimal) -> bool:
        if not job.open:
            return False
        job.open, job.cost, job.unsure = False, cost, unsure
        for name, limit in self.of(job):
            parts = job.parts.get(name) or {limit.start(job.at): NOTHING}
            left = cost or NOTHING
            for number, start in enumerate(sorted(parts), 1):
                newest = number == len(parts)
                counter, share = self.counter(name, start), left if newest else min(parts[start], left)
                left -= share
                counter.reserved -= parts[start]
                counter.spent += share
                counter.unsettled += (parts[start] if cost is None else NOTHING) + (unsure if newest else NOTHING)
                counter.jobs += int(newest and cost is None)
        job.parts = {}
        return True

    def put(self, name: str, new: Limit, at: datetime) -> None:
        old = self.limits.get(name)
        self.limits[name] = new
        if old and (old.window, old.agent, old.user) == (new.window, new.agent, new.user):
            return
        self.drop(name)
        for job in self.jobs.values():
            if not new.counts(job):
                continue
            start = new.start(job.at)
            counter = self.counter(name, start)
            if job.open and job.held:
                job.parts[name] = {start: job.held}
                counter.reserved += job.held
            elif not job.open and start == new.start(at):
                counter.spent += job.cost or NOTHING
                counter.unsettled += job.unsure + (job.held if job.cost is None else NOTHING)
                counter.jobs += int(job.cost is None)

    def drop(self, name: str) -> None:
        self.counters = {key: counter for key, counter in self.counters.items() if key[0] != name}
        for job in self.jobs.values():
            job.parts.pop(name, None)


class Machine(RuleBasedStateMachine):
    """Asks the tables and the model the same."""

    office: Office
    clock: Clock
    loop: asyncio.AbstractEventLoop
    owner: asyncpg.Connection

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @initialize()
    def begin(self) -> None:
        self.model = Model()
        self.clock.at = NOON
        self.do(self.owner.execute("TRUNCATE router.reservations, router.budgets CASCADE"))
        self.put(name="alpha", limit=Decimal("0.20"), window="day", agent=None, user=None, hard=True)
        self.put(name="beta", limit=Decimal("0.10"), window="hour", agent="critic", user=None, hard=True)
        for agent, user in (("critic", "alice"), ("critic", None), ("assistant", "alice")):
            self.admit(agent, user, Decimal(1))

    def job(self, recent: int) -> str:
        return f"j{max(len(self.model.jobs) - recent, 0)}"

    @rule(agent=AGENTS, user=USERS, cap=st.one_of(USD, st.just(Decimal(1)), st.none()))
    def admit(self, agent: str, user: str | None, cap: Decimal | None) -> None:
        job = f"j{len(self.model.jobs)}"
        self.do(self.office.admit(job, agent=agent, user=user, cap=None if cap is None else str(cap)))
        self.model.admit(job, agent, user, cap, self.clock.at)

    @rule(recent=RECENT, total=USD)
    def extend_one(self, recent: int, total: Decimal) -> None:
        self.extend([(recent, total, None)])

    @rule(asks=st.lists(st.tuples(RECENT, SOME, CAPS), min_size=1, max_size=6))
    def extend(self, asks: list[tuple[int, Decimal | None, Decimal | None]]) -> None:
        known = [(self.job(recent), total, cap) for recent, total, cap in asks]

        async def burst() -> list[Any]:
            return await asyncio.gather(
                *(
                    self.office.extend(job, None if total is None else str(total), cap=str(cap) if cap else None)
                    for job, total, cap in known
                )
            )

        for (job_id, total, cap), one in zip(known, self.do(burst()), strict=True):
            job = self.model.jobs[job_id]
            assert (one.granted, one.limited_by) == self.model.extend(job, total, cap, self.clock.at)
            assert one.held_usd == job.held

    @rule(recent=RECENT, spent=USD)
    def release(self, recent: int, spent: Decimal) -> None:
        job = self.job(recent)
        assert self.do(self.office.release(job, str(spent))) == self.model.release(self.model.jobs[job], spent)

    @rule(recent=RECENT, cost=SOME, unsure=st.sampled_from([NOTHING, Decimal("0.01")]))
    def settle(self, recent: int, cost: Decimal | None, unsure: Decimal) -> None:
        job = self.job(recent)
        settled = self.do(self.office.settle(job, None if cost is None else str(cost), unsettled=str(unsure)))
        assert settled == self.model.settle(self.model.jobs[job], cost, unsure)

    @rule(
        name=NAMES,
        limit=LIMITS,
        window=st.sampled_from(["hour", "day", "total", "job"]),
        agent=st.none() | AGENTS,
        user=USERS,
        hard=st.booleans(),
    )
    def put(self, *, name: str, limit: Decimal, window: str, agent: str | None, user: str | None, hard: bool) -> None:
        hard = hard or window == "job"
        self.do(self.office.put(name, str(limit), window=window, agent=agent, user_id=user, hard=hard))
        self.model.put(name, Limit(limit, window, agent, user, hard), self.clock.at)

    @precondition(lambda self: len(self.model.limits) > 2)
    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.do(self.office.money.on_delete(DeleteBudget(tenant=TENANT, name=name)))
        self.model.limits.pop(name, None)
        self.model.drop(name)

    @rule(minutes=st.sampled_from([1, 45, 600]))
    def wait(self, minutes: int) -> None:
        self.clock.at += timedelta(minutes=minutes)

    @invariant()
    def the_tables_say_what_the_model_says(self) -> None:
        listed = self.do(self.office.money.on_list(ListBudgets(tenant=TENANT))).budgets
        assert [figures(budget) for budget in listed] == [
            self.expected(name, limit) for name, limit in sorted(self.model.limits.items())
        ]

    def expected(self, name: str, limit: Limit) -> tuple[Any, ...]:
        if limit.window == "job":
            return name, NOTHING, NOTHING, NOTHING, 0, None
        counter = self.model.counter(name, limit.start(self.clock.at))
        left = max(limit.limit - counter.used, NOTHING)
        return name, counter.spent, counter.reserved, counter.unsettled, counter.jobs, left


def figures(budget: Budget) -> tuple[Any, ...]:
    return (
        budget.name,
        budget.spent_usd,
        budget.reserved_usd,
        budget.unsettled_usd,
        budget.unsettled_jobs,
        budget.left_usd,
    )


@pytest.fixture
def machine(database: Database) -> Iterator[type[Machine]]:
    """The machine, at a database of its own."""
    loop, clock = asyncio.new_event_loop(), Clock()

    async def connect() -> tuple[Office, asyncpg.Connection]:
        queries = migrations().parent / "queries.sql"
        store = await Store.connect(database.as_role(ROLE, PASSWORD), schema=SCHEMA, queries=queries)
        office = Office(store, clock)
        await office.agents.seed({"assistant": AgentConfig(), "critic": AgentConfig()})
        return office, await asyncpg.connect(database.dsn)

    Machine.loop, Machine.clock = loop, clock
    Machine.office, Machine.owner = loop.run_until_complete(connect())
    yield Machine
    loop.run_until_complete(Machine.owner.close())
    loop.run_until_complete(Machine.office.store.close())
    loop.close()


def test_histories_that_hypothesis_thinks_of_agree_with_the_model(machine: type[Machine]):
    chosen = settings(
        max_examples=examples(15),
        stateful_step_count=30,
        deadline=None,
        derandomize=True,
        # A failure is told as it was found: making it shorter takes minutes on a real database.
        phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize("seed", seeds(6))
def test_long_and_busy_histories_agree_with_the_model(machine: type[Machine], seed: int):
    chance = random.Random(seed)
    told = machine()
    told.begin()
    for _ in range(200):
        step(told, chance)
        told.the_tables_say_what_the_model_says()
    told.teardown()


def step(told: Machine, chance: random.Random) -> None:
    """One thing that happens: mostly jobs that spend, now and then a budget that changes."""

    def usd(most: int = 12) -> Decimal:
        return Decimal(chance.randint(1, most)) / 100

    def maybe(value: Decimal, odds: float = 0.1) -> Decimal | None:
        return None if chance.random() < odds else value

    def agent() -> str:
        return chance.choice(["assistant", "critic"])

    recent = chance.randint(1, 4)
    match chance.choices(range(7), weights=[3, 6, 2, 3, 1, 0.3, 1])[0]:
        case 0:
            told.admit(agent(), chance.choice([None, "alice", "bob"]), maybe(chance.choice([usd(), Decimal(1)])))
        case 1:
            asks = [(chance.randint(1, 4), maybe(usd()), maybe(usd(), 0.8)) for _ in range(chance.randint(1, 4))]
            told.extend(asks)
        case 2:
            told.release(recent, usd())
        case 3:
            told.settle(recent, maybe(usd()), maybe(Decimal("0.01"), 0.7) or NOTHING)
        case 4:
            told.put(
                name=chance.choice(["alpha", "beta", "gamma"]),
                limit=usd(40),
                window=chance.choice(["hour", "day", "total", "job"]),
                agent=chance.choice([None, None, agent()]),
                user=chance.choice([None, None, "alice"]),
                hard=chance.random() < 0.7,
            )
        case 5:
            told.delete(chance.choice(["alpha", "beta", "gamma"]))
        case _:
            told.wait(chance.choice([1, 45, 600]))
