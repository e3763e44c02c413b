"""Three routers share the schedules and one is killed in mid-fire: every moment is one job, and none is left out."""

from __future__ import annotations

from collections import Counter

import pytest
import pytest_asyncio

from wayline.chassis import Failpoint
from wayline.contracts.events import JobCompleted, JobSubmitted
from wayline.contracts.schedules import PutSchedule, Schedule, ScheduleConfig, ScheduledJob
from wayline.testkit import until
from wayline.testkit.processes import ServiceProcess
from wayline.testkit.walks import length

from .conftest import MakePlatform
from .kill_points import kill_points
from .platform import TENANT, FaultPlatform, encode_plan, says
from .test_service_failpoints import FIRINGS

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SCHEDULES = length(12, short=4)
WAVES_MAX = 40
"""In each, every schedule is due once; the doomed router is the first at one of them soon."""
QUICK = {Failpoint.ROUTER_FIRED_AFTER}
"""What `make test` runs of them."""
WAYS = [
    *kill_points(((one,) for one in sorted(FIRINGS)), QUICK),
    pytest.param(None, id="anywhere", marks=pytest.mark.slow),
]
"""At a failpoint, or from outside while it fires."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(make_platform: MakePlatform) -> FaultPlatform:
    platform = await make_platform()
    platform.fleet.set("router", WAYLINE_ROUTER_SCHEDULES_EVERY_S="0.1")
    await platform.fleet.ensure("router", "tool_registry")
    await platform.fleet.start("router")
    await platform.fleet.start("executor")
    return platform


async def put_schedules(platform: FaultPlatform, prefix: str) -> None:
    for number in range(SCHEDULES):
        job = ScheduledJob.model_validate(
            {"agent": "assistant", "input": encode_plan([says(f"{prefix} {number}")]), "options": {"model": "chat/x"}}
        )
        config = ScheduleConfig(cron="0 0 1 1 *", job=job)
        asked = PutSchedule(tenant=TENANT, name=f"{prefix}-{number}", config=config)
        await platform.bus.ask(asked, Schedule)


async def fire_all(platform: FaultPlatform, prefix: str) -> None:
    """Have every schedule be due now, and wait until each was decided about by some router."""
    ours = f"{prefix}-%"
    await platform.sql("UPDATE router.schedules SET next_at = clock_timestamp() WHERE name LIKE $1", ours)

    async def decided() -> bool:
        [left] = await platform.sql(
            "SELECT count(*) AS n FROM router.schedules WHERE name LIKE $1 AND next_at <= clock_timestamp()", ours
        )
        return left["n"] == 0

    await until(decided, why="every schedule is decided")


async def fire_until_dead(platform: FaultPlatform, prefix: str, doomed: ServiceProcess) -> int:
    """Fire again and again until a router has died; return how many moments there were."""
    for wave in range(1, WAVES_MAX + 1):
        await fire_all(platform, prefix)
        if doomed.failpoint is None and wave == 2:
            # It has no point to die at: it dies at any, while the third wave is fired.
            doomed.kill()
        if doomed.exited:
            await fire_all(platform, prefix)
            return (wave + 1) * SCHEDULES
    raise AssertionError(f"{doomed.failpoint} was not reached in {WAVES_MAX} waves:\n{doomed.tail}")


async def until_sent(platform: FaultPlatform) -> None:
    async def sent() -> bool:
        return await platform.sql("SELECT job_id FROM router.firings WHERE submission IS NOT NULL") == []

    await until(sent, why="the bus has every firing's job, and the tables say so")


@pytest.mark.parametrize("point", WAYS)
async def test_a_router_killed_in_mid_fire_loses_and_repeats_no_firing(
    platform: FaultPlatform, point: Failpoint | None
):
    prefix = str(point or "anywhere").replace(".", "-")
    await put_schedules(platform, prefix)

    doomed = await platform.fleet.start("router", point)
    assert len(platform.fleet.running("router")) == 3
    moments = await fire_until_dead(platform, prefix, doomed)

    firings = await platform.sql("SELECT * FROM router.firings WHERE schedule LIKE $1", f"{prefix}-%")
    jobs = [row["job_id"] for row in firings]
    await platform.until_ended(*jobs)
    # What the dead router had submitted and not noted is submitted again by another.
    await until_sent(platform)
    await platform.until_quiet()

    assert doomed.killed
    assert len(set(jobs)) == len(jobs) == moments
    assert {row["outcome"] for row in firings} == {"fired"}
    assert Counter(row["schedule"] for row in firings) == {
        f"{prefix}-{number}": moments // SCHEDULES for number in range(SCHEDULES)
    }
    for row in firings:
        [submitted] = await platform.events_of(row["job_id"], JobSubmitted)
        [completed] = await platform.events_of(row["job_id"], JobCompleted)
        assert submitted.schedule is not None
        assert (submitted.schedule.schedule, submitted.schedule.due_at) == (row["schedule"], row["due_at"])
        assert completed.answer == row["schedule"].replace(f"{prefix}-", f"{prefix} ")
    await platform.check(*jobs)
    # No job but these was asked of the model: nothing was submitted under another id.
    told = [attempt for attempt, body in platform.chat.calls if f'"{prefix} ' in str(body["messages"])]
    assert len(told) == moments
    assert await platform.dead_letters() == []
