"""NATS and Postgres killed, frozen and back again in the middle of jobs: everything waits, nothing is lost."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from wayline.embedded import PostgresServer
from wayline.testkit import until
from wayline.testkit.databases import make_template
from wayline.testkit.fixtures import FAST

from .conftest import ACK_WAIT_S, MakeWorld
from .world import EVERY_EFFECT, ONCE, World, calls, says

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

JOBS = 5
SERVICES = ("router", "tool_registry", "executor")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postgres(server_dir: Path) -> AsyncIterator[PostgresServer]:
    """A Postgres of our own, to kill."""
    server = PostgresServer(server_dir / secrets.token_hex(4) / "postgres", settings=FAST)
    await server.start()
    await make_template(server)
    yield server
    await server.kill()
    shutil.rmtree(server.data_dir, ignore_errors=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(make_world: MakeWorld, postgres: PostgresServer) -> World:
    world = await make_world(postgres=postgres)
    await world.fleet.ensure(*SERVICES)
    return world


async def begin(world: World, name: str) -> list[str]:
    """Jobs in the middle of their work: at least one has had an effect, none has ended."""
    jobs = [f"{name}-{n}" for n in range(JOBS)]
    for job_id in jobs:
        await world.submit(job_id, calls(*EVERY_EFFECT), calls(*EVERY_EFFECT), calls(ONCE), says("done"))

    def acted() -> bool:
        return any(f"/{name}-" in key for _, key in world.effects.calls())

    await until(acted, within=60, why="the jobs are at work")
    return jobs


async def end_well(world: World, jobs: list[str]) -> None:
    """Every job ends once, completed; nothing was put aside, and no service died of it."""
    await world.until_ended(*jobs)
    await world.until_quiet()
    await world.check(*jobs)
    assert {(await world.job(job_id)).life.status for job_id in jobs} == {"completed"}
    assert await world.dead_letters() == []
    assert [len(world.fleet.running(name)) for name in SERVICES] == [1, 1, 1]


async def lasts(seconds: float) -> None:
    """Wait until something has gone on for so long."""
    begun = time.monotonic()
    await until(lambda: time.monotonic() - begun > seconds, within=seconds + 5, why=f"{seconds} s are over")


async def test_jobs_go_on_when_nats_was_killed_and_is_back(world: World):
    jobs = await begin(world, "nats-killed")

    await world.nats.kill()
    await world.nats.start()

    await end_well(world, jobs)


async def test_jobs_go_on_after_nats_froze_beyond_the_ack_wait(world: World):
    jobs = await begin(world, "nats-frozen")

    world.nats.pause()
    await lasts(3 * ACK_WAIT_S)
    world.nats.resume()

    await end_well(world, jobs)


async def test_jobs_wait_for_a_postgres_that_was_killed_and_is_back(world: World, postgres: PostgresServer):
    """Rule 5 too: the outage is longer than every `ack_wait`, and no message is given up for it."""
    jobs = await begin(world, "postgres-killed")

    await postgres.kill()
    for n in range(JOBS):
        jobs.append(await world.submit(f"postgres-away-{n}", calls(ONCE), says("done")))
    await lasts(3 * ACK_WAIT_S)
    assert (await world.bus.js.stream_info("SUBMIT")).state.messages >= JOBS
    await postgres.start()

    await end_well(world, jobs)
