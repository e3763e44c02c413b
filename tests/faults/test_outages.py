"""NATS and Postgres killed, frozen and back again in the middle of jobs: everything waits, nothing is lost.

Jobs that are parked cost no executor memory, outlive a restart of everything, and end once each.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest
import pytest_asyncio

from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.jobs import Signal, ToolResult, ToolResults
from wayline.embedded import PostgresServer
from wayline.testkit import until
from wayline.testkit.processes import ServiceProcess

from .conftest import ACK_WAIT_S, MakePlatform
from .platform import EVERY_EFFECT, ONCE, TENANT, FaultPlatform, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

JOBS = 5
SERVICES = ("router", "tool_registry", "executor")
GROWTH_MAX = 1.25
"""Of an executor's memory over that of one that has taken fifty jobs already."""
WARM = 50


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform, own_postgres: PostgresServer) -> FaultPlatform:
    platform = await make_platform(postgres=own_postgres)
    await platform.fleet.ensure(*SERVICES)
    await platform.bus.ask(PutAgent(tenant=TENANT, name="careful", config=AgentConfig(ask="writes")), Agent)
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


def resident_kb(process: ServiceProcess) -> int:
    """Return the memory that a process has now."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


async def park(platform: FaultPlatform, name: str, count: int) -> list[str]:
    """Submit jobs that pay, and wait until each of them waits for its approval and no executor holds one."""
    jobs = [f"{name}-{n}" for n in range(count)]
    for job_id in jobs:
        await platform.submit_plan(job_id, calls(ONCE), says("done"), agent="careful")

    async def handed_out() -> bool:
        return await platform.count("SUBMIT") == 0 and await platform.count("RUN") == 0

    await until(handed_out, within=60 + count, why="no ticket is left")
    waiting = [(await platform.job(job_id)).life.waiting for job_id in jobs]
    assert all(one is not None and one.why == "approval" for one in waiting)
    return jobs


async def restart_everything(platform: FaultPlatform, postgres: PostgresServer) -> None:
    for process in [process for name in SERVICES for process in platform.fleet.running(name)]:
        process.kill()
    await platform.nats.server.kill()
    await postgres.kill()
    await postgres.start()
    await platform.nats.server.start()
    await until(lambda: platform.bus.nc.is_connected, why="the test's own connection is back")
    await platform.fleet.ensure(*SERVICES)


@pytest.mark.parametrize("count", [10, pytest.param(1_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
async def test_parked_approvals_outlive_a_restart_of_everything(
    platform: FaultPlatform, own_postgres: PostgresServer, count: int
):
    warm = await park(platform, f"warm{count}", min(WARM, count))
    [executor] = platform.fleet.running("executor")
    before_kb = resident_kb(executor)
    jobs = warm + await park(platform, f"parked{count}", count)
    growth = resident_kb(executor) / before_kb
    print(f"{count} parked jobs: an executor of {before_kb} kB grew by the factor {growth:.3f}")
    if count > WARM:
        assert growth < GROWTH_MAX

    await restart_everything(platform, own_postgres)
    asked = [(job_id, (await platform.job(job_id)).tools.pending) for job_id in jobs]
    assert [len(pending) for _, pending in asked] == [1] * len(jobs)
    await asyncio.gather(*(platform.decide(job_id, pending[0]) for job_id, pending in asked))

    await platform.until_ended(*jobs, within=60 + count)
    await platform.until_quiet()
    await platform.check(*jobs)
    paid = Counter(key for _, key in platform.effects.calls())
    assert {paid[f"{TENANT}/{job_id}/1/1"] for job_id in jobs} == {1}
    assert await platform.dead_letters() == []


@pytest.mark.slow
async def test_results_of_callers_tools_go_on_after_everything_was_killed(
    platform: FaultPlatform, own_postgres: PostgresServer
):
    """Each job asks its caller and pays beside that; half of the results are stored before the kill."""
    jobs = [f"given-{n}" for n in range(6)]
    plan = (calls("weather", ONCE), says("done"))
    for job_id in jobs:
        await platform.submit_plan(job_id, *plan, client_tools=[{"name": "weather"}])
    asked = {job_id: (await platform.wait_until_parked(job_id)).life.waiting for job_id in jobs}

    async def give(job_id: str) -> None:
        waiting = asked[job_id]
        assert waiting is not None
        results = tuple(ToolResult(key=one.key, content=f"rain at {job_id}") for one in waiting.tool_calls)
        given = Signal(tenant=TENANT, job_id=job_id, signal=ToolResults(results=results))
        await platform.bus.publish(given, msg_id=given.msg_id)

    await asyncio.gather(*map(give, jobs[::2]))
    await restart_everything(platform, own_postgres)
    await asyncio.gather(*map(give, jobs[1::2]))
    # Also what is given twice is given once.
    await asyncio.gather(*map(give, jobs[:3]))

    await platform.until_ended(*jobs, within=60)
    await platform.until_quiet()
    await platform.check(*jobs)
    for job_id in jobs:
        ends = [event for event in await platform.events(job_id) if event.type == "tool.completed"]
        assert sorted(end.content for end in ends if end.tool == "weather") == [f"rain at {job_id}"]  # type: ignore
    paid = Counter(key for _, key in platform.effects.calls())
    assert {paid[f"{TENANT}/{job_id}/1/2"] for job_id in jobs} == {1}
    assert await platform.dead_letters() == []
