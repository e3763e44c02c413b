"""A Postgres that dies in the middle of jobs, and its standby that is promoted: everything waits, nothing is lost."""

from __future__ import annotations

import pytest
import pytest_asyncio

from wayline.chassis.topology import TELEMETRY_TRACING
from wayline.testkit.postgres_pair import PostgresPair

from .conftest import ACK_WAIT_S, MakePlatform
from .platform import ONCE, FaultPlatform, calls, says
from .test_outages import JOBS, SERVICES, begin, end_well, lasts

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(300)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform, pair: PostgresPair) -> FaultPlatform:
    platform = await make_platform("tracing", postgres=pair)
    # As operators have it: a connection to a Postgres that is gone takes longer than the tests' second, three times.
    spans = (await platform.bus.js.consumer_info(TELEMETRY_TRACING.stream, TELEMETRY_TRACING.name)).config
    await platform.bus.js.add_consumer(TELEMETRY_TRACING.stream, spans.evolve(ack_wait=TELEMETRY_TRACING.ack_wait_s))
    await platform.fleet.ensure(*SERVICES, "tracing")
    return platform


async def standbys(platform: FaultPlatform) -> tuple[int, bool | None]:
    """Return how many standbys tracing's role sees, and whether it is told how far behind they are."""
    async with platform.superuser() as conn:
        # It may not read `pg_stat_replication` itself.
        await conn.execute("SET ROLE wayline_tracing")
        seen = "SELECT count(*), bool_and(behind_bytes >= 0) FROM tracing.standbys_behind()"
        [row] = await conn.fetch(seen)
        return row[0], row[1]


async def test_jobs_go_on_over_a_standby_that_was_promoted(platform: FaultPlatform, pair: PostgresPair):
    jobs = await begin(platform, "promoted")
    assert await standbys(platform) == (1, True)

    await pair.kill()
    for n in range(JOBS):
        jobs.append(await platform.submit_plan(f"while-away-{n}", calls(ONCE), says("done")))
    await lasts(3 * ACK_WAIT_S)
    await pair.promote()

    assert await standbys(platform) == (0, None)
    await end_well(platform, jobs)
    await platform.until_traced(*jobs)
    rows = await platform.sql("SELECT count(*) AS n, count(DISTINCT job_id) AS jobs FROM router.reservations")
    assert tuple(rows[0]) == (len(jobs), len(jobs))
