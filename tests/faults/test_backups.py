"""A backup taken while jobs run, restored elsewhere: every job goes on, and every invariant holds."""

from __future__ import annotations

import asyncio
import itertools
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from decimal import Decimal
from pathlib import Path

import pytest
import pytest_asyncio

from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.budgets import Budget, BudgetConfig, PutBudget
from wayline.contracts.models import ModelCard, Prices, PutModel, Rates
from wayline.contracts.tools import RUN_AGENT
from wayline.embedded import PostgresServer
from wayline.testkit import until

from .books import Books, calls_of
from .conftest import MakePlatform
from .log_checks import problems, story
from .platform import EVERY_EFFECT, ONCE, TENANT, FaultPlatform, calls, encode_plan, says
from .restoring import back_up, restored
from .test_random_kills import seed_of_this_run

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

AGENTS = {
    "careful": AgentConfig(ask="writes"),
    "worker": AgentConfig(model="chat/x", tools=()),
    "boss": AgentConfig(model="chat/x", tools=(), agents=("worker",)),
}
SUBMITTED_MIN = 60
BACKUPS = 4
SERVICES = ("router", "tool_registry", "executor", "tracing")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform("tracing", delay_ms=30)
    await start(platform)
    prices = Prices(rates=Rates(input=Decimal("0.02"), output=Decimal("0.05")))
    card = ModelCard(provider="chat", model="x", tier="standard", prices=prices)
    await platform.bus.ask(PutModel(tenant=TENANT, card=card), ModelCard)
    budget = BudgetConfig(limit_usd=Decimal(1_000), window="total")
    await platform.bus.ask(PutBudget(tenant=TENANT, name="all", config=budget), Budget)
    for name, config in AGENTS.items():
        await platform.bus.ask(PutAgent(tenant=TENANT, name=name, config=config), Agent)
    return platform


@pytest.fixture(autouse=True)
def _its_own_model(platform: FaultPlatform) -> None:
    """Have the model speak for the first platform again, after it spoke for a restored one."""
    platform.chat.script = platform.script


async def start(platform: FaultPlatform) -> None:
    """Start the services, with a router that knows that the priced model can be called."""
    platform.fleet.set("router", WAYLINE_CHAT_BASE_URL=platform.chat.url)
    await platform.fleet.ensure(*SERVICES)


async def submit(platform: FaultPlatform, name: str, n: int) -> str:
    """Submit a job: most work, some wait for an approval, some for their turn in a session."""
    plan = [calls(*EVERY_EFFECT), calls(ONCE), says("done")]
    match n % 4:
        case 1:
            return await platform.submit_plan(name, calls(ONCE), says("done"), agent="careful")
        case 2:
            return await platform.submit_plan(name, calls(ONCE), says("done"), session=f"{name[:3]}-s{n % 8}")
        case _:
            return await platform.submit_plan(name, *plan)


async def check_restored(after: FaultPlatform, jobs: list[str], before: Counter[tuple[str, str]]) -> None:
    """Check that every job ends once, that nothing of before acts again, and that all books say the same.

    `jobs`: of this test; `before`: what had acted when the backup began, by its count when it is restored.
    """
    paid = {of: n for of, n in before.items() if of[0] == "pay_once" and of[1].split("/")[1] in jobs}
    await after.wait_until_empty("SUBMIT")
    # Some of those that came while the backup was taken are in it, too.
    found = {row["job_id"] for row in await after.sql("SELECT job_id FROM router.reservations")}
    jobs = sorted(found.union(jobs))
    await after.until_ended(*jobs, within=120)
    await after.until_quiet(60)
    for job_id in jobs:
        records = await after.records(job_id)
        assert problems(records) == [], f"{job_id}: {problems(records)}\n{story(records)}"
    acted = Counter(after.effects.calls())
    again = {of: acted[of] for of, n in paid.items() if acted[of] > n}
    assert again == {}, "a payment made before the backup was made again"
    rows = {row["job_id"]: row for row in await after.sql("SELECT * FROM router.reservations")}
    logs = {job_id: (await after.job(job_id)).money.cost_usd for job_id in jobs}
    assert {job_id: rows[job_id]["settled_usd"] for job_id in jobs} == logs
    await after.until_traced(*jobs, within=60)
    assert await after.dead_letters() == []
    calls = {key: call for job_id in jobs for key, call in calls_of(job_id, await after.events(job_id)).items()}
    # Without the provider's bill: calls that were made after the backup are on it, and in no log.
    books = Books(calls, [])
    assert books.total > 0
    await books.against_tracing(after)
    await books.against_the_reservations(after)


@pytest.mark.slow
async def test_jobs_of_a_backup_taken_under_load_end_elsewhere(
    platform: FaultPlatform, own_postgres: PostgresServer, stack: AsyncExitStack, server_dir: Path
):
    jobs = [await submit(platform, f"job-{n}", n) for n in range(12)]
    await until(lambda: platform.effects.count("pay_once") > 1, within=60, why="the jobs are at work")
    before = Counter(platform.effects.calls())
    path = server_dir / f"{secrets.token_hex(4)}.tar"

    await back_up(platform, path)
    await platform.fleet.stop(*SERVICES)
    after, _ = await restored(stack, platform, path, postgres=own_postgres)
    await start(after)

    await check_restored(after, jobs, before)


@pytest.mark.slow
async def test_parts_that_are_far_apart_are_brought_together(
    platform: FaultPlatform, own_postgres: PostgresServer, stack: AsyncExitStack, server_dir: Path
):
    """The queues and tables are read first; then jobs wake, pay, end and come; then the logs are read."""
    await platform.fleet.ensure(*SERVICES)
    held = await platform.submit_plan("held", calls(ONCE), says("done at last", hold="first"), session="apart")
    turn = await platform.submit_plan("turn", calls(ONCE), says("done"), session="apart")
    woken = await platform.submit_plan("woken", calls(ONCE), says("done", hold="woken"), agent="careful")
    paying = await platform.submit_plan("paying", calls(ONCE), calls(ONCE), says("done"), agent="careful")
    task = {"agent": "worker", "input": encode_plan([says("done", hold="worker")])}
    boss = await platform.submit_plan(
        "boss", {"tools": [[RUN_AGENT, task]], "text": "one moment", "hold": "boss"}, says("done"), agent="boss"
    )
    await until(lambda: {"first", "boss"} <= platform.holds.keys(), within=60, why="jobs wait for their model")
    for job_id in (woken, paying):
        await platform.wait_until(job_id, lambda job: job.life.waiting is not None, why="it waits for an approval")
    jobs = [held, turn, woken, paying, boss]
    key = f"{TENANT}/{paying}/1/1"

    async def has_row(key: str) -> bool:
        return bool(await platform.sql("SELECT FROM tools.calls WHERE key = $1", key))

    async def go_on() -> None:
        # Its ticket is of after the queue was read, and it lives on it.
        await platform.advance(woken)
        await until(lambda: "woken" in platform.holds, within=60, why="the woken job waits for its model")
        # Waits for a job that began after the tables were read.
        platform.holds["boss"].set()
        await until(lambda: "worker" in platform.holds, within=60, why="the child waits for its model")
        # Ends, and lets the next one of its session run, and end.
        platform.holds["first"].set()
        # Began after the tables were read.
        await platform.submit_plan("young", calls(ONCE), says("done"))
        await platform.until_ended(held, turn, "young")
        # In the log with its intent, and in the middle of its effect.
        platform.effects.pause()
        await platform.advance(paying)
        await until(lambda: has_row(key), within=60, why="a payment is on its way")

    path = server_dir / secrets.token_hex(4)
    await back_up(platform, path, before_logs=go_on)
    platform.effects.resume()
    await until(lambda: platform.effects.count("pay_once", key), within=60, why="the payment is made")
    await platform.fleet.stop(*SERVICES)
    counts = Counter(platform.effects.calls())

    after, recovered = await restored(stack, platform, path, postgres=own_postgres)
    assert (recovered.left_out, recovered.lapsed_calls) == (1, 1)
    after.holds.update(platform.holds)
    await start(after)

    await check_restored(after, jobs, counts)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_backups_of_any_moment_are_restored_whole(
    platform: FaultPlatform, own_postgres: PostgresServer, server_dir: Path
):
    seed = seed_of_this_run()
    print(f"backups at random moments: WAYLINE_FAULT_SEED={seed}")
    draw = random.Random(seed)
    await platform.fleet.ensure(*SERVICES)
    await platform.fleet.start("executor")
    jobs: list[str] = []
    taken: list[tuple[Path, list[str], set[tuple[str, str]]]] = []

    async def submit_all() -> None:
        # A quick machine has done its jobs before the last backup begins, and no record comes any more.
        for n in itertools.count():
            if n >= SUBMITTED_MIN and len(taken) == BACKUPS:
                return
            jobs.append(await submit(platform, f"any{n}", n))
            paced = platform.records_seen + draw.randrange(4)
            await until(lambda paced=paced: platform.records_seen >= paced, within=60, why="jobs go on")
            await platform.advance(*jobs[-8:])

    async def take_all() -> None:
        for _ in range(BACKUPS):
            seen = platform.records_seen + draw.randrange(5, 60)
            await until(lambda seen=seen: platform.records_seen >= seen, within=60, why="jobs have gone on")
            path = server_dir / secrets.token_hex(4)
            accepted, acted = list(jobs), set(platform.effects.calls())
            await back_up(platform, path)
            taken.append((path, accepted, acted))

    await asyncio.gather(submit_all(), take_all())
    await platform.fleet.stop(*SERVICES)
    for path, accepted, acted in taken:
        async with AsyncExitStack() as stack:
            counts = Counter(platform.effects.calls())
            after, recovered = await restored(stack, platform, path, postgres=own_postgres)
            print(f"{len(accepted)} jobs: {recovered}")
            await start(after)
            await check_restored(after, accepted, Counter({of: counts[of] for of in acted}))
