"""Tables that jobs write most are changed while 50 jobs a second come: none is lost, and none waits for a lock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from wayline.chassis.declare import declare
from wayline.store import migrate
from wayline.testkit import until
from wayline.testkit.databases import PASSWORD

from .conftest import LIMITS, MakePlatform
from .hot_tables import HOT, longest_wait, role_of_schema, with_changes_of_a_hot_table
from .platform import FaultPlatform, says
from .test_outages import lasts

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(900)]

JOBS_PER_S = 50
BETWEEN = 100
"""Jobs that are offered before, between and after the changes: two seconds of them."""
ENDED_WITHIN_S = 600.0


@dataclass
class Offered:
    """Jobs that are submitted at a rate, however many of them have ended."""

    platform: FaultPlatform
    jobs: list[str] = field(default_factory=list)
    stored: int = 0
    stopping: bool = False

    async def run(self) -> float:
        """Submit until it is told to stop; return how many a second the bus has stored."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with asyncio.TaskGroup() as tasks:
            while not self.stopping:
                await lasts(max(0.0, begun + len(self.jobs) / JOBS_PER_S - loop.time()))
                tasks.create_task(self._submit(f"offered-{len(self.jobs)}"))
                self.jobs.append(f"offered-{len(self.jobs)}")
        return len(self.jobs) / (loop.time() - begun)

    async def _submit(self, job_id: str) -> None:
        await self.platform.submit_plan(job_id, says("done"))
        self.stored += 1

    async def goes_on(self) -> None:
        """Wait until so many more jobs have come."""
        wanted = self.stored + BETWEEN
        await until(lambda: self.stored >= wanted, within=120, why="jobs are stored")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform("tracing")
    await platform.fleet.ensure("router", "tool_registry", "executor", "tracing")
    return platform


async def test_no_job_is_lost_or_held_up_at_50_a_second(platform: FaultPlatform, tmp_path: Path):
    offered, over = Offered(platform), asyncio.Event()
    coming = asyncio.create_task(offered.run())
    watching = asyncio.create_task(longest_wait(platform, over))
    await offered.goes_on()

    for schema in HOT:
        directory = await asyncio.to_thread(with_changes_of_a_hot_table, schema, tmp_path)
        role = role_of_schema(schema)
        applied = await migrate(platform.database.dsn, schema=schema, role=role, password=PASSWORD, directory=directory)
        assert applied[:2] == ["9998_more.sql", "9999_index.sql"]
        _ = [change async for change in declare(platform.bus.js, LIMITS)]
        await offered.goes_on()

    over.set()
    waited = await watching
    offered.stopping = True
    rate = await coming
    print(f"{len(offered.jobs)} jobs, {rate:.1f} a second; a service waited for a lock at most {waited:.3f} s")
    settled = "SELECT count(*) AS n FROM router.reservations WHERE state = 'settled'"

    async def all_settled() -> bool:
        return (await platform.sql(settled))[0]["n"] == len(offered.jobs)

    await until(all_settled, within=ENDED_WITHIN_S, why="every job is settled")
    await platform.until_quiet(60)
    await platform.check(*offered.jobs)
    await platform.until_traced(*offered.jobs, within=300)
    told = await platform.sql("SELECT status, count(*) AS n FROM tracing.jobs GROUP BY status")
    assert [tuple(row) for row in told] == [("completed", len(offered.jobs))]
    assert await platform.dead_letters() == []
    assert waited < 1
