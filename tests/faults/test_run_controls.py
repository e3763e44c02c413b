"""`kill -9` while jobs wait for a place or for the end of a pause: none is lost, and no more run than may."""

from __future__ import annotations

from datetime import datetime

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.run_controls import (
    EndPause,
    Pause,
    PauseEnded,
    PutPause,
    PutRunningLimit,
    RunningLimit,
    RunningLimitInForce,
)
from wayline.testkit import until

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import ONCE, TENANT, FaultPlatform, calls, says
from .test_service_failpoints import RUN_CONTROLS

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

MOST = 2
RESUMES = {point for point in RUN_CONTROLS if "resume" in point}
EXECUTOR = [
    Failpoint.EXECUTOR_CLAIM_BEFORE,
    Failpoint.EXECUTOR_CLAIM_AFTER,
    Failpoint.EXECUTOR_PARK_BEFORE,
    Failpoint.EXECUTOR_PARK_AFTER,
    Failpoint.EXECUTOR_END_AFTER,
    Failpoint.EXECUTOR_SETTLE_AFTER,
]
QUICK = {Failpoint.ROUTER_PLACE_BEFORE, Failpoint.ROUTER_RESUME_AFTER, Failpoint.EXECUTOR_PARK_AFTER}
"""What `make test` runs of them."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform()
    await platform.fleet.ensure("router", "tool_registry")
    for agent in ("limited", "paused"):
        await platform.bus.ask(PutAgent(tenant=TENANT, name=agent, config=AgentConfig()), Agent)
    limit = RunningLimit(whose="agent", name="limited", max_running=MOST)
    await platform.bus.ask(PutRunningLimit(tenant=TENANT, limit=limit), RunningLimitInForce)
    return platform


async def submit(platform: FaultPlatform, name: str, agent: str, *, jobs: int) -> list[str]:
    names = [f"{name.replace('.', '-')}-{n}" for n in range(jobs)]
    for job in names:
        await platform.submit_plan(job, calls(ONCE), says("done"), agent=agent)
    return names


async def at_once(platform: FaultPlatform, *jobs: str) -> int:
    """Return how many of the jobs ran at once, by their logs: from a call of a model until a park or the end."""
    moments: list[tuple[datetime, int]] = []
    for job in jobs:
        runs = False
        for event in await platform.events(job):
            begins = isinstance(event, e.ModelRequested)
            ends = isinstance(event, e.JobParked | e.JobCompleted | e.JobFailed | e.JobCancelled)
            if (begins and not runs) or (ends and runs):
                runs = begins
                moments.append((event.at, 1 if begins else -1))
    most = count = 0
    for _, change in sorted(moments):
        count += change
        most = max(most, count)
    return most


async def no_permits(platform: FaultPlatform) -> bool:
    return await platform.sql("SELECT job_id FROM router.run_permits") == []


async def check(platform: FaultPlatform, *jobs: str) -> None:
    await platform.until_ended(*jobs)
    await platform.until_quiet()
    await platform.check(*jobs)
    # Every place and every wait is over.
    await until(lambda: no_permits(platform), within=90, why="no job has a place any more")
    assert await platform.dead_letters() == []


@pytest.mark.parametrize("point", kill_points(((one,) for one in sorted(RUN_CONTROLS - RESUMES)), QUICK))
async def test_a_router_killed_there_gives_no_place_twice(platform: FaultPlatform, point: Failpoint):
    await platform.fleet.stop("router")
    doomed = await platform.fleet.start("router", point)
    await platform.fleet.ensure("executor")
    jobs = await submit(platform, point, "limited", jobs=6)
    await platform.until_dead(doomed)
    await platform.fleet.start("router")
    await platform.fleet.start("router")

    await check(platform, *jobs)

    assert await at_once(platform, *jobs) == MOST


@pytest.mark.parametrize("point", kill_points(((one,) for one in EXECUTOR), QUICK))
async def test_an_executor_killed_there_keeps_no_place(platform: FaultPlatform, point: Failpoint):
    await platform.fleet.ensure("router")
    await platform.fleet.stop("executor")
    doomed = await platform.fleet.start("executor", point)
    jobs = await submit(platform, point, "limited", jobs=5)
    await platform.until_dead(doomed)
    await platform.fleet.start("executor")

    await check(platform, *jobs)

    assert await at_once(platform, *jobs) == MOST


@pytest.mark.parametrize("point", kill_points(((one,) for one in sorted(RESUMES)), QUICK))
async def test_a_router_killed_while_it_resumes_loses_no_job(platform: FaultPlatform, point: Failpoint):
    await platform.fleet.ensure("router")
    paused = PutPause(tenant=TENANT, kind="agent", name="paused", by="test")
    await platform.bus.ask(paused, Pause)
    await platform.fleet.stop("executor")
    await platform.fleet.start("executor")
    jobs = await submit(platform, point, "paused", jobs=3)
    for job in jobs:
        await platform.wait_until_parked(job)
    await platform.fleet.stop("router")
    await platform.sql("DELETE FROM router.pauses")
    doomed = await platform.fleet.start("router", point)
    await platform.until_dead(doomed)
    await platform.fleet.start("router")

    await check(platform, *jobs)

    ended = await platform.bus.ask(EndPause(tenant=TENANT, kind="agent", name="paused"), PauseEnded)
    assert not ended.ended
