"""Full disks under Postgres and under NATS, for a while: probes say so, and when there is room everything goes on."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.contracts import events as e
from wayline.embedded import PostgresServer
from wayline.embedded.ports import free_port
from wayline.journal import JobLog
from wayline.standalone.servers import watch
from wayline.testkit import until
from wayline.testkit.databases import make_template
from wayline.testkit.disks import SmallDisk, small_disk
from wayline.testkit.fixtures import FAST

from .conftest import ACK_WAIT_S, MakePlatform
from .platform import EVERY_EFFECT, ONCE, TENANT, FaultPlatform, calls, encode_plan, says

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

JOBS = 5
SERVICES = ("router", "tool_registry", "executor", "tracing", "gateway")
POSTGRES_DISK_MB = 256
NATS_DISK_MB = 64
SUBMISSIONS_MAX = 200
"""Small rows that fit into the pages there are, before the first one needs another."""
REFUSED_WITHIN_S = 15.0


@pytest.fixture(scope="module")
def postgres_disk(server_dir: Path) -> Iterator[SmallDisk]:
    with small_disk(server_dir / f"disk-{secrets.token_hex(4)}", megabytes=POSTGRES_DISK_MB) as disk:
        yield disk


@pytest.fixture(scope="module")
def nats_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    with small_disk(tmp_path_factory.mktemp("nats-disk"), megabytes=NATS_DISK_MB) as disk:
        yield disk


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postgres(postgres_disk: SmallDisk) -> AsyncIterator[PostgresServer]:
    server = PostgresServer(postgres_disk.path / "postgres", settings=FAST)
    await server.start()
    await make_template(server)
    yield server
    await server.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(
    nats_disk: SmallDisk, postgres: PostgresServer, make_platform: MakePlatform
) -> AsyncIterator[FaultPlatform]:
    """A platform whose servers are watched as `wayline up` does; the disks stay until it is gone."""
    platform = await make_platform("gateway", "tracing", postgres=postgres, nats_disk=nats_disk.path)
    platform.port = free_port()
    platform.fleet.set("gateway", WAYLINE_HTTP_PORT=str(platform.port))
    platform.fleet.set("tracing", WAYLINE_TRACING_DRIFT_EVERY_S=1)
    await platform.fleet.ensure(*SERVICES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watch, "STORES_EVERY_S", 0.5)
        patch.setattr(watch, "ROOM_MIN_BYTES", 24 * 1024 * 1024)
        servers = watch.ServerWatch(
            [platform.nats.server, postgres], print_line=lambda _: None, check=platform.bus.check
        )
        watching = asyncio.create_task(servers.run())
        yield platform
        watching.cancel()
        await asyncio.wait({watching})


async def begin(platform: FaultPlatform, name: str) -> list[str]:
    """Jobs in the middle of their work: at least one has had an effect, none has ended."""
    jobs = [f"{name}-{n}" for n in range(JOBS)]
    for job_id in jobs:
        await platform.submit_plan(job_id, calls(*EVERY_EFFECT), calls(*EVERY_EFFECT), calls(ONCE), says("done"))

    def acted() -> bool:
        return any(f"/{name}-" in key for _, key in platform.effects.calls())

    await until(acted, within=60, why="the jobs are at work")
    return jobs


async def until_told(platform: FaultPlatform, need: str, words: str) -> None:
    """Wait until the gateway's probe says what is wrong."""
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{platform.port}", timeout=20) as http:

        async def told() -> bool:
            answer = await http.get("/health/ready")
            return answer.status_code == 503 and words in answer.json()["needs"][need]

        await until(told, within=60, why=f"the probe says of {need}: {words}")


async def until_ready(platform: FaultPlatform) -> None:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{platform.port}", timeout=20) as http:

        async def ready() -> bool:
            return (await http.get("/health/ready")).status_code == 200

        await until(ready, within=60, why="the gateway is ready again")


async def submit_until_refused(platform: FaultPlatform, name: str) -> tuple[list[str], dict[str, Any]]:
    """Submit over HTTP until the first refusal; returns the jobs that were accepted, and the problem."""
    accepted: list[str] = []
    for number in range(SUBMISSIONS_MAX):
        job_id = f"{name}-http-{number}"
        answer = await post(platform, job_id)
        if answer.status_code != 202:
            assert answer.headers["content-type"] == "application/problem+json"
            assert "retry-after" in answer.headers
            return accepted, {"status": answer.status_code, "job_id": job_id, **answer.json()}
        accepted.append(job_id)
    raise AssertionError(f"{SUBMISSIONS_MAX} jobs were accepted")


async def post(platform: FaultPlatform, job_id: str) -> httpx2.Response:
    body = {"job_id": job_id, "agent": "assistant", "input": encode_plan([says("done")])}
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{platform.port}", timeout=REFUSED_WITHIN_S) as http:
        return await http.post("/v1/jobs", json={**body, "options": {"model": "chat/x"}})


async def end_well(platform: FaultPlatform, jobs: list[str]) -> None:
    """Every job ends once, completed; nothing was put aside, and tracing's tables equal the logs."""
    await platform.until_ended(*jobs, within=120)
    await platform.until_quiet(within=60)
    await platform.check(*jobs)
    assert {(await platform.job(job_id)).life.status for job_id in jobs} == {"completed"}
    assert await platform.dead_letters() == []
    await platform.until_traced(*jobs, within=60)
    ledger = "SELECT job_id, count(*) AS calls, coalesce(sum(cost_usd), 0) AS usd FROM tracing.ledger GROUP BY 1"
    booked = {row["job_id"]: (row["calls"], row["usd"]) for row in await platform.sql(ledger)}
    assert {job_id: booked[job_id] for job_id in jobs} == {job_id: await paid(platform, job_id) for job_id in jobs}
    assert [len(platform.fleet.running(name)) for name in SERVICES] == [1] * len(SERVICES)


async def paid(platform: FaultPlatform, job_id: str) -> tuple[int, Decimal]:
    """What a job's log says was paid for: how often, and what of it has a price."""
    events = [event async for event in JobLog(platform.bus, TENANT, job_id).read()]
    calls = [event for event in events if isinstance(event, e.ModelCompleted)]
    costs = [event.cost_usd for event in events if isinstance(event, e.ToolCompleted) and event.cost_usd is not None]
    return len(calls) + len(costs), sum((call.cost_usd or Decimal(0) for call in calls), sum(costs, Decimal(0)))


async def lasts(seconds: float) -> None:
    """Wait until something has gone on for so long."""
    begun = time.monotonic()
    await until(lambda: time.monotonic() - begun > seconds, within=seconds + 5, why=f"{seconds} s are over")


async def test_jobs_go_on_after_the_disk_of_postgres_was_full(platform: FaultPlatform, postgres_disk: SmallDisk):
    jobs = await begin(platform, "postgres-full")

    postgres_disk.fill()
    jobs += [await platform.submit_plan(f"postgres-full-bus-{n}", calls(ONCE), says("done")) for n in range(JOBS)]
    accepted, problem = await submit_until_refused(platform, "postgres-full")
    await until_told(platform, "postgres", "Postgres")
    await lasts(3 * ACK_WAIT_S)
    postgres_disk.free()

    assert (problem["status"], problem["code"]) == (503, "unavailable")
    assert problem["detail"].startswith("the database does not answer")
    await until_ready(platform)
    assert (await post(platform, problem["job_id"])).status_code in {200, 202}
    await end_well(platform, [*jobs, *accepted, problem["job_id"]])


async def test_jobs_go_on_after_the_disk_of_nats_was_full(platform: FaultPlatform, nats_disk: SmallDisk):
    jobs = await begin(platform, "nats-full")
    first = platform.nats.server.pid

    nats_disk.fill()
    accepted, problem = await submit_until_refused(platform, "nats-full")
    await until_told(platform, "bus", "its disk may be full")
    await lasts(3 * ACK_WAIT_S)
    assert platform.nats.server.pid == first, "nothing is gained by a restart while there is no room"
    nats_disk.free()

    assert (problem["status"], problem["code"]) == (503, "unavailable")
    assert "its disk may be full" in problem["detail"]
    await until(
        lambda: platform.nats.server.running and platform.nats.server.pid != first,
        within=60,
        why="the bus is started again",
    )
    await until_ready(platform)
    # Told to come again, its sender may: whether the bus has kept it or not, it is one job.
    assert (await post(platform, problem["job_id"])).status_code in {200, 202}
    await end_well(platform, [*jobs, *accepted, problem["job_id"]])
