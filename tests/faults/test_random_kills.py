"""Everything killed at random while jobs run: each ends exactly once, and nothing that counts happens twice."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from wayline.embedded.ports import free_port
from wayline.testkit import until

from .conftest import MakePlatform
from .platform import CLOCK, EVERY_EFFECT, IDEMPOTENT, ONCE, FaultPlatform, calls, encode_plan, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SEARCH = "search_knowledge"
NATS = "nats"
RECORDS_APART = 3
REPLICAS = {"executor": 2, "router": 1, "tool_registry": 1, "tracing": 1, "gateway": 1, "retrieval": 1}


class RandomKills:
    """Kills what the seed says, each time after so many more records of the jobs' logs, and starts it again."""

    def __init__(self, platform: FaultPlatform, *, seed: int, kills: dict[str, int], records: int) -> None:
        self._world = platform
        self._random = random.Random(seed)
        victims = [name for name, n in kills.items() for _ in range(n)]
        self._random.shuffle(victims)
        after = sorted(self._random.sample(range(2, records), len(victims)))
        self.plan = list(zip(after, victims, strict=True))
        self.done: list[tuple[int, str]] = []

    def _apart(self) -> int:
        """What must be written before the next kill, so that they do not all fall into one moment."""
        return self.done[-1][0] + RECORDS_APART if self.done else 0

    async def go_on(self, *, hurry: bool = False) -> bool:
        """Kill what is due, replace what is dead; whether the plan is used up."""
        platform = self._world
        written = platform.records_seen
        # Live messages are lost while NATS is away: the count may end short of the last kill.
        if hurry and self.plan:
            written = max(written, self.plan[0][0], self._apart())
        while self.plan and max(self.plan[0][0], self._apart()) <= written:
            _, victim = self.plan.pop(0)
            self.done.append((written, victim))
            if victim == NATS:
                await platform.nats.server.kill()
                await platform.nats.server.start()
                continue
            running = platform.fleet.running(victim)
            if running:
                self._random.choice(running).kill()
        for name, n in REPLICAS.items():
            while name in platform.served and len(platform.fleet.running(name)) < n:
                platform.fleet.spawn(name)
        return not self.plan


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform, request: pytest.FixtureRequest) -> AsyncIterator[FaultPlatform]:
    yield await make_platform("tracing", "gateway", "retrieval", delay_ms=request.param)


def plan(n: int) -> list[dict]:
    """Parallel tools of the four effects, in one step or in two, with and without a search."""
    first = calls(*EVERY_EFFECT, CLOCK, *((SEARCH,) if n % 3 == 0 else ()))
    for tool in first["tools"]:
        if tool[0] == SEARCH:
            tool[1] = {"query": "the sea"}
    return [first, *([calls(ONCE, IDEMPOTENT)] if n % 2 else []), says("done")]


async def submit_over_http(platform: FaultPlatform, job_id: str, n: int) -> None:
    """Ask until the gateway has said that it is accepted, as any client would."""
    job = {"agent": "assistant", "input": encode_plan(plan(n)), "job_id": job_id}
    body = {**job, "options": {"model": "chat/x", "max_steps": 20}}

    async def accepted() -> bool:
        try:
            async with httpx2.AsyncClient() as client:
                answer = await client.post(f"http://127.0.0.1:{platform.port}/v1/jobs", json=body, timeout=10)
        except httpx2.HTTPError:
            return False
        assert answer.status_code in {200, 202, 429, 503}, answer.text
        return answer.is_success

    await until(accepted, within=60, why=f"{job_id} is accepted")


async def run(platform: FaultPlatform, *, seed: int, jobs: int, kills: dict[str, int], over_http: int = 0) -> None:
    print(f"random kills: WAYLINE_FAULT_SEED={seed}")
    platform.served = tuple(name for name in REPLICAS if name in kills)
    for name in platform.served:
        for _ in range(REPLICAS[name]):
            platform.fleet.spawn(name)
    for process in platform.fleet.processes:
        await process.ready()
    # Every job writes at least six records: the kills fall into the first two thirds of the work.
    random_kills = RandomKills(platform, seed=seed, kills=kills, records=jobs * 4)
    names = [f"j{n}" for n in range(jobs)]
    left = set(names)

    async def live() -> None:
        for n, job_id in enumerate(names):
            if n < jobs - over_http:
                await platform.submit_plan(job_id, *plan(n))
            else:
                await submit_over_http(platform, job_id, n)

        async def all_ended() -> bool:
            left.difference_update(await platform.advance(*left))
            return not left

        await until(all_ended, within=420, why="every job ends")

    async def used_up() -> bool:
        return await random_kills.go_on(hurry=not left) and not left

    try:
        await asyncio.gather(live(), until(used_up, within=480, why="everybody was killed"))
    except AssertionError as error:
        raise AssertionError(f"{error}; {len(left)} left: {sorted(left)[:5]}; killed: {random_kills.done}") from None
    await random_kills.go_on()
    await platform.until_quiet(60)
    print(f"killed, after so many records: {random_kills.done}")

    await platform.check(*names)
    for job_id in names:
        job = await platform.job(job_id)
        assert job.life.status == "completed", (job_id, job.life.error)
    rows = await platform.sql("SELECT count(*) AS n, count(DISTINCT job_id) AS jobs FROM router.reservations")
    assert tuple(rows[0]) == (jobs, jobs)
    await platform.until_traced(*names, within=90)
    assert await platform.dead_letters() == []


def seed_of_this_run() -> int:
    return int(os.environ.get("WAYLINE_FAULT_SEED") or random.SystemRandom().randrange(1_000_000))


@pytest.mark.parametrize("platform", [30], indirect=True)
async def test_eight_jobs_end_exactly_once_though_every_service_is_killed(platform: FaultPlatform):
    kills = {"executor": 2, "router": 1, "tool_registry": 1, "tracing": 1, NATS: 1}
    await run(platform, seed=seed_of_this_run(), jobs=8, kills=kills)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("platform", [200], indirect=True)
async def test_a_hundred_jobs_end_once_though_services_are_killed(platform: FaultPlatform):
    platform.port = free_port()
    platform.fleet.set("gateway", WAYLINE_HTTP_PORT=str(platform.port))
    await run(platform, seed=seed_of_this_run(), jobs=100, kills={**dict.fromkeys(REPLICAS, 5), NATS: 2}, over_http=20)
