"""NATS and Postgres killed, frozen and back again in the middle of jobs: everything waits, nothing is lost."""

from __future__ import annotations

import time

import pytest
import pytest_asyncio

from wayline.embedded import PostgresServer
from wayline.testkit import until

from .conftest import ACK_WAIT_S, MakePlatform
from .platform import EVERY_EFFECT, ONCE, FaultPlatform, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

JOBS = 5
SERVICES = ("router", "tool_registry", "executor")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform, own_postgres: PostgresServer) -> FaultPlatform:
    platform = await make_platform(postgres=own_postgres)
    await platform.fleet.ensure(*SERVICES)
    return platform


async def begin(platform: FaultPlatform, name: str) -> list[str]:
    """Jobs in the middle of their work: at least one has had an effect, none has ended."""
    jobs = [f"{name}-{n}" for n in range(JOBS)]
    for job_id in jobs:
        await platform.submit_plan(job_id, calls(*EVERY_EFFECT), calls(*EVERY_EFFECT), calls(ONCE), says("done"))

    def acted() -> bool:
        return any(f"/{name}-" in key for _, key in platform.effects.calls())

    await until(acted, within=60, why="the jobs are at work")
    return jobs


async def end_well(platform: FaultPlatform, jobs: list[str]) -> None:
    """Every job ends once, completed; nothing was put aside, and no service died of it."""
    await platform.until_ended(*jobs)
    await platform.until_quiet()
    await platform.check(*jobs)
    assert {(await platform.job(job_id)).life.status for job_id in jobs} == {"completed"}
    assert await platform.dead_letters() == []
    assert [len(platform.fleet.running(name)) for name in SERVICES] == [1, 1, 1]


async def lasts(seconds: float) -> None:
    """Wait until something has gone on for so long."""
    begun = time.monotonic()
    await until(lambda: time.monotonic() - begun > seconds, within=seconds + 5, why=f"{seconds} s are over")


async def test_jobs_go_on_when_nats_was_killed_and_is_back(platform: FaultPlatform):
    jobs = await begin(platform, "nats-killed")

    await platform.nats.server.kill()
    await platform.nats.server.start()

    await end_well(platform, jobs)


@pytest.mark.slow
async def test_jobs_go_on_after_nats_froze_beyond_the_ack_wait(platform: FaultPlatform):
    jobs = await begin(platform, "nats-frozen")

    platform.nats.server.pause()
    await lasts(3 * ACK_WAIT_S)
    platform.nats.server.resume()

    await end_well(platform, jobs)


async def test_jobs_wait_for_a_postgres_that_was_killed_and_is_back(
    platform: FaultPlatform, own_postgres: PostgresServer
):
    """Rule 5 too: the outage is longer than every `ack_wait`, and no message is given up for it."""
    jobs = await begin(platform, "postgres-killed")

    await own_postgres.kill()
    for n in range(JOBS):
        jobs.append(await platform.submit_plan(f"postgres-away-{n}", calls(ONCE), says("done")))
    await lasts(3 * ACK_WAIT_S)
    assert (await platform.bus.js.stream_info("SUBMIT")).state.messages >= JOBS
    await own_postgres.start()

    await end_well(platform, jobs)
