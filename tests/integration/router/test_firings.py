"""A schedule that was due when a router read it is fired only if it is still so when the router decides."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from wayline.contracts import ids
from wayline.contracts.jobs import SubmitJob
from wayline.contracts.schedules import RunSchedule
from wayline.router.schedules.firing_table import FiringTable
from wayline.router.schedules.firings import Firings
from wayline.router.schedules.handlers import ScheduleHandlers, ScheduleLimits
from wayline.router.schedules.schedule_table import ScheduleTable
from wayline.testkit import until

from .conftest import TENANT, Office

CONFIG = '{"cron": "0 * * * *", "job": {"agent": "assistant", "input": "go"}}'
LIMITS = ScheduleLimits(schedules_max=10, least_interval_s=1)
NOBODY = cast("Any", None)
"""No bus: what is not decided is not submitted."""

MEANWHILE = {
    "changed": "UPDATE schedules SET version = 2, next_at = now() - interval '1 s'",
    "decided by another router": "UPDATE schedules SET next_at = now() + interval '1 h'",
    "disabled": "UPDATE schedules SET version = 2, next_at = NULL",
    "deleted": "DELETE FROM schedules",
    "deleted and created again": "UPDATE schedules SET uid = 'u2'",
}


@pytest.mark.parametrize("statement", MEANWHILE.values(), ids=MEANWHILE)
async def test_a_plan_that_changed_since_it_was_read_fires_nothing(office: Office, statement: str):
    firings = Firings(NOBODY, FiringTable(office.store), every_s=3_600, missed_max_s=3_600)
    await office.store.execute(
        TENANT,
        "INSERT INTO schedules (tenant, name, uid, config, next_at) VALUES ($1, 's1', 'u1', $2, now())",
        *(TENANT, CONFIG),
    )
    _, [due] = await FiringTable(office.store).unsent_and_due()

    await office.store.execute(TENANT, statement)
    planned = await office.store.fetch(TENANT, "SELECT * FROM schedules")
    await firings.decide(due)

    assert await office.store.fetch(TENANT, "SELECT * FROM firings") == []
    assert await office.store.fetch(TENANT, "SELECT * FROM schedules") == planned


class Submitted:
    """Takes the submissions of firings in place of the bus."""

    def __init__(self) -> None:
        self.jobs: list[str] = []

    async def publish(self, job: SubmitJob, **_: object) -> None:
        assert job.job_id is not None
        self.jobs.append(job.job_id)


async def test_a_bad_firing_row_is_marked_and_stops_no_other(office: Office):
    bus = Submitted()
    firings = Firings(cast("Any", bus), FiringTable(office.store), every_s=3_600, missed_max_s=3_600)
    for job_id, body in (("bad", "{"), ("good", '{"agent": "assistant", "input": "go"}')):
        await office.store.execute(
            TENANT,
            "INSERT INTO firings"
            " (tenant, job_id, schedule, uid, version, due_at, decided_at, cause, outcome, submission)"
            " VALUES ($1, $2, 's1', 'u1', 1, now(), now() - interval '1 h', 'due', 'fired', $3)",
            *(TENANT, job_id, body),
        )

    await firings.look()

    assert bus.jobs == ["good"]
    assert (await FiringTable(office.store).unsent_and_due())[0] == []
    [bad] = await office.store.fetch(TENANT, "SELECT outcome, reason FROM firings WHERE job_id = 'bad'")
    assert bad["outcome"] == "refused" and "InvalidMessage" in bad["reason"]


async def test_a_bad_schedule_row_stops_no_other_schedule(office: Office):
    bus = Submitted()
    firings = Firings(cast("Any", bus), FiringTable(office.store), every_s=3_600, missed_max_s=3_600)
    for name, config in (("bad", '{"cron": 4}'), ("good", CONFIG)):
        await office.store.execute(
            TENANT,
            "INSERT INTO schedules (tenant, name, uid, config, next_at) VALUES ($1, $2, $2, $3, now())",
            *(TENANT, name, config),
        )

    await firings.look()

    assert len(bus.jobs) == 1
    assert (await FiringTable(office.store).unsent_and_due())[1] == []
    [bad] = await office.store.fetch(TENANT, "SELECT outcome, reason FROM firings WHERE schedule = 'bad'")
    assert bad["outcome"] == "skipped" and "planned no more" in bad["reason"]


async def test_a_run_repeated_while_it_is_decided_is_the_same_firing(office: Office):
    firings = Firings(cast("Any", Submitted()), FiringTable(office.store), every_s=9, missed_max_s=9)
    schedules = ScheduleHandlers(
        NOBODY, ScheduleTable(office.store), tenants=office.known_tenants, firings=firings, limits=LIMITS
    )
    await office.store.execute(
        TENANT,
        "INSERT INTO schedules (tenant, name, uid, config) VALUES ($1, 's1', 'u1', $2)",
        *(TENANT, CONFIG),
    )
    run = RunSchedule(tenant=TENANT, name="s1", run_id="once")

    async def is_blocked() -> bool:
        return bool(await office.store.fetchval(TENANT, "SELECT count(*) FROM pg_locks WHERE NOT granted"))

    async with office.store.tenant(TENANT) as conn:
        job_id = ids.firing_job(TENANT, "u1", 0, "run/once")
        await conn.fetchrow(
            office.store.sql.run_schedule, TENANT, "s1", job_id, '{"agent": "assistant", "input": "go"}'
        )
        repeated = asyncio.create_task(schedules.on_run(run))
        await until(is_blocked, why="the repeat waits for the first")

    assert (await repeated).job_id == job_id
