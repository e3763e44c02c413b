"""One NATS server that becomes a cluster of three, with jobs at work and parked, and becomes one again."""

from __future__ import annotations

import secrets
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.embedded import PostgresServer
from wayline.standalone.doctor.bus import examine_copies
from wayline.testkit import until

from .conftest import MakePlatform
from .platform import EVERY_EFFECT, ONCE, TENANT, FaultPlatform, calls, says
from .restoring import back_up, restored

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(600)]

SERVICES = ("router", "tool_registry", "executor", "tracing")


async def moved(
    stack: AsyncExitStack, source: FaultPlatform, home: Path, postgres: PostgresServer, *, replicas: int
) -> FaultPlatform:
    """Stop the services, take a backup, and restore it with so many copies, as docs/operating.md says."""
    for process in [process for name in SERVICES for process in source.fleet.running(name)]:
        process.drain()
        await process.ended(within=60)
    path = home / secrets.token_hex(4)
    await back_up(source, path)
    after, recovered = await restored(
        stack, source, path, postgres=postgres, clustered=replicas > 1, replicas=replicas, nothing_after=True
    )
    assert (recovered.left_out, recovered.lapsed_calls, recovered.freed) == (0, 0, 0)
    for name in SERVICES:
        for _ in range(2 if replicas > 1 else 1):
            await after.fleet.start(name)
    return after


async def submit(platform: FaultPlatform, name: str) -> list[str]:
    """Submit jobs that are at work, and one that waits for an approval."""
    jobs = [
        await platform.submit_plan(f"{name}-{n}", calls(*EVERY_EFFECT), calls(ONCE), says("done")) for n in range(6)
    ]
    parked = await platform.submit_plan(f"{name}-parked", calls(ONCE), says("done"), agent="careful")
    await until(lambda: any(f"/{name}-" in key for _, key in platform.effects.calls()), within=60, why="jobs work")
    await platform.wait_until(parked, lambda job: job.life.waiting is not None, why="it waits for an approval")
    return [*jobs, parked]


async def test_one_server_becomes_three_and_one_again_beside_jobs(
    make_platform: MakePlatform, own_postgres: PostgresServer, server_dir: Path
):
    one = await make_platform("tracing", delay_ms=30)
    await one.fleet.ensure(*SERVICES)
    await one.bus.ask(PutAgent(tenant=TENANT, name="careful", config=AgentConfig(ask="writes")), Agent)
    jobs = await submit(one, "on-one")
    async with AsyncExitStack() as stack:
        three = await moved(stack, one, server_dir, own_postgres, replicas=3)
        copies: list[str] = []

        async def whole() -> bool:
            found = await examine_copies(three.bus.js)
            copies[:] = [str(found)]
            return found is not None and found.state == "ok"

        await until(whole, within=60, why=f"every stream has three copies: {copies}")
        ended = [job_id for job_id in jobs if job_id != "on-one-parked"]
        await three.until_ended(*ended, within=120)
        jobs += await submit(three, "on-three")

        back = await moved(stack, three, server_dir, own_postgres, replicas=1)
        assert await examine_copies(back.bus.js) is None
        assert (await back.bus.js.stream_info("EVENTS")).config.num_replicas == 1
        await back.until_ended(*jobs, within=120)
        await back.until_quiet(60)
        await back.check(*jobs)
        await back.until_traced(*jobs, within=60)
        assert {(await back.job(job_id)).life.status for job_id in jobs} == {"completed"}
        assert max(Counter(back.effects.calls())[of] for of in back.effects.calls() if of[0] == "pay_once") == 1
