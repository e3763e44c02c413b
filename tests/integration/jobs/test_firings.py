"""Each moment of a schedule is one job, by the plan that stands, whatever becomes of the routers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from wayline.contracts import ids
from wayline.contracts.events import JobSubmitted
from wayline.contracts.jobs import FiredBy
from wayline.contracts.schedules import (
    DeleteSchedule,
    EnableSchedule,
    ListSchedules,
    Schedule,
    ScheduleDeleted,
    ScheduleList,
)
from wayline.router.settings import Settings as RouterSettings
from wayline.testkit import Platform, until

from .firings import HOURLY, OFTEN, fired, get, make_due, put, soon


async def test_a_moment_becomes_one_job_that_names_its_schedule(platform: Platform):
    await platform.start("router", "executor", "tool_registry", router=OFTEN)
    saved = await put(platform, "once", at=soon(1.5), job={"session_id": "s1", "options": {"max_steps": 3}})

    [firing] = await fired(platform, "once")
    assert firing.job_id is not None
    job = await platform.wait_for(firing.job_id)
    [submitted] = await platform.events_of(firing.job_id, JobSubmitted)
    after = await get(platform, "once")

    assert saved.next_at is not None
    assert job.schedule == FiredBy(schedule="once", version=1, due_at=saved.next_at)
    assert (submitted.job.input, submitted.job.session_id, submitted.job.options.max_steps) == ("What is new?", "s1", 3)
    assert (after.next_at, after.next_firings) == (None, ())
    assert (after.firings[0].outcome, after.firings[0].status) == ("fired", job.status)
    assert job.trace_id == ids.trace_id("default", firing.job_id)
    assert submitted.caller is not None
    assert submitted.caller.split("-")[1] != job.trace_id


async def test_three_routers_fire_every_moment_once(platform: Platform):
    for _ in range(3):
        await platform.start("router", router=OFTEN)
    for number in range(3):
        await put(platform, f"s{number}", cron=HOURLY)
    for lap in range(5):
        for number in range(3):
            await make_due(platform, f"s{number}", ago=f"{lap * 100 + number} ms")
        for number in range(3):
            await fired(platform, f"s{number}", times=lap + 1)
    await platform.wait_until_empty("SUBMIT")

    firings = [one for number in range(3) for one in await fired(platform, f"s{number}", times=5)]
    assert len({one.job_id for one in firings}) == len(firings) == 15
    assert (await platform.bus.js.stream_info("RUN")).state.messages == 15
    assert await platform.dead_letters() == []


async def test_a_changed_schedule_does_not_fire_by_its_old_plan(platform: Platform):
    await platform.start("router")
    await put(platform, "before", cron=HOURLY)
    await platform.stop("router")
    await make_due(platform, "before")
    await platform.start("router", router=RouterSettings(schedules_every_s=3_600))
    # From here on this router answers only: it has looked, and looks again in an hour.
    await fired(platform, "before")
    for name in ("changed", "deleted", "renewed", "disabled"):
        await put(platform, name, at=soon(3_600))
        await make_due(platform, name)
    changed = await put(platform, "changed", cron=HOURLY)
    for name in ("deleted", "renewed"):
        await platform.bus.ask(DeleteSchedule(tenant="default", name=name), ScheduleDeleted)
    renewed = await put(platform, "renewed", at=soon(3_600))
    disabled = await platform.bus.ask(EnableSchedule(tenant="default", name="disabled", enabled=False), Schedule)
    await put(platform, "witness", cron=HOURLY)
    await make_due(platform, "witness")

    await platform.start("router", router=OFTEN)
    await fired(platform, "witness")

    assert (changed.version, renewed.version, disabled.next_at) == (2, 1, None)
    listed = await platform.bus.ask(ListSchedules(tenant="default"), ScheduleList)
    fires = {one.name: len(one.firings) for one in listed.schedules}
    assert fires == {"before": 1, "changed": 0, "disabled": 0, "renewed": 0, "witness": 1}


async def test_a_schedule_that_was_away_fires_once_for_the_newest_moment(platform: Platform):
    await platform.start("router", router=OFTEN)
    await put(platform, "late", cron=HOURLY)
    await put(platform, "strict", cron="* * * * *", missed="skip")
    await platform.stop("router")
    await make_due(platform, "late", ago="5 hours")
    await make_due(platform, "strict", ago="3 days")

    await platform.start("router", router=OFTEN)
    [late], [strict] = await fired(platform, "late"), await fired(platform, "strict")
    await platform.wait_until_empty("SUBMIT")

    [submitted] = await platform.events_of(str(late.job_id), JobSubmitted)
    assert submitted.schedule is not None
    assert submitted.schedule.missed == late.missed >= 4
    assert late.due_at > datetime.now(UTC) - timedelta(hours=1, minutes=1)
    # Its newest moment is less than a minute old: it was not missed.
    assert (strict.outcome, strict.missed > 1_000) == ("fired", True)


async def test_a_moment_that_is_too_old_is_skipped_and_says_so(platform: Platform):
    await platform.start("router", router=RouterSettings(schedules_every_s=0.02, schedules_missed_max_s=60))
    await put(platform, "old", at=soon(3_600))
    await make_due(platform, "old", ago="2 hours")

    [skipped] = await fired(platform, "old")

    assert (skipped.outcome, skipped.job_id) == ("skipped", None)
    assert "missed by 2:00:00" in skipped.reason
    assert await platform.count("EVENTS") == 0


async def test_a_firing_is_skipped_while_the_job_before_runs(platform: Platform):
    # No executor runs: a job that was submitted does not end.
    await platform.start("router", router=OFTEN)
    await put(platform, "slow", cron=HOURLY, overlap="skip")
    await make_due(platform, "slow", ago="2 s")
    [first] = await fired(platform, "slow")
    await make_due(platform, "slow", ago="1 s")
    second, _ = await fired(platform, "slow", times=2)
    await platform.start("executor", "tool_registry")
    await platform.wait_for(str(first.job_id))
    await make_due(platform, "slow")
    third, *_ = await fired(platform, "slow", times=3)

    assert (second.outcome, second.reason) == ("skipped", f"job {first.job_id!r} of the firing before has not ended")
    assert third.outcome == "fired"


async def test_a_schedules_jobs_are_listed_and_linked_to_its_span(platform: Platform):
    await platform.start("router", "executor", "tool_registry", "tracing", "gateway", router=OFTEN)
    http = await platform.http()
    await put(platform, "hourly", cron=HOURLY)
    await platform.submit("other")
    await make_due(platform, "hourly")
    [firing] = await fired(platform, "hourly")
    await platform.wait_for(str(firing.job_id))

    async def listed() -> list[dict[str, Any]]:
        page = (await http.get("/v1/jobs", params={"schedule": "hourly"})).json()["jobs"]
        return [one for one in page if one["status"] == "completed"]

    await until(listed, why="tracing has the job")
    [job] = await listed()
    trace = (await http.get(f"/v1/jobs/{firing.job_id}/trace")).json()
    async with platform.superuser() as conn:
        [row] = await conn.fetch("SELECT uid FROM router.schedules")

    assert job["job_id"] == firing.job_id
    assert datetime.fromisoformat(job["schedule"]["due_at"]) == firing.due_at
    trace_id, span_id = ids.schedule_span("default", row["uid"], 1)
    assert {"trace_id": trace_id, "span_id": span_id} in trace["root"]["links"]
    assert trace["root"]["attributes"]["wayline.schedule"] == "hourly"
    assert trace["trace_id"] == ids.trace_id("default", str(firing.job_id)) != trace_id
