"""Schedules through whole services: each moment is one job, by the plan that stands, under its tenant's rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wayline.contracts import ids
from wayline.contracts.agents import DeleteAgent, Deleted
from wayline.contracts.budgets import Budget, BudgetConfig, PutBudget
from wayline.contracts.errors import Refused
from wayline.contracts.events import JobSubmitted
from wayline.contracts.jobs import FiredBy
from wayline.contracts.schedules import (
    DeleteSchedule,
    EnableSchedule,
    Firing,
    GetSchedule,
    ListSchedules,
    PutSchedule,
    RunSchedule,
    Schedule,
    ScheduleConfig,
    ScheduleDeleted,
    ScheduleList,
)
from wayline.contracts.tenants import CreateTenant, DisableTenant, EnableTenant, Tenant
from wayline.gateway.adapters.keys import create_key
from wayline.journal import JobLog
from wayline.router.settings import Settings as RouterSettings
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import Platform, until

JOB = {"agent": "assistant", "input": "What is new?"}
OFTEN = RouterSettings(schedules_every_s=0.02, schedules_max=3)
HOURLY = f"{(datetime.now(UTC).minute + 30) % 60} * * * *"
"""Of itself it never fires while a test runs."""


async def put(platform: Platform, name: str, *, tenant: str = "default", job: Any = None, **fields: Any) -> Schedule:
    config = ScheduleConfig.model_validate({"job": {**JOB, **(job or {})}, **fields})
    return await platform.bus.ask(PutSchedule(tenant=tenant, name=name, config=config), Schedule)


async def get(platform: Platform, name: str, *, tenant: str = "default") -> Schedule:
    return await platform.bus.ask(GetSchedule(tenant=tenant, name=name), Schedule)


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def make_due(platform: Platform, name: str, *, ago: str = "0 s") -> None:
    """Move a schedule's plan, as if its moment had come so long ago."""
    async with platform.superuser() as conn:
        await conn.execute(
            "UPDATE router.schedules SET next_at = now() - $1::text::interval WHERE name = $2", ago, name
        )


async def fired(platform: Platform, name: str, *, times: int = 1, tenant: str = "default") -> list[Firing]:
    """Wait until a schedule has decided so many moments, and return them, newest first."""

    async def enough() -> list[Firing]:
        firings = (await get(platform, name, tenant=tenant)).firings
        return [*firings] if len(firings) >= times else []

    return await until(enough, why=f"{name} has fired")


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


async def test_all_jobs_of_a_version_are_linked_to_one_span(platform: Platform):
    await platform.start("router", router=OFTEN)
    await put(platform, "hourly", cron=HOURLY)
    await make_due(platform, "hourly")
    await fired(platform, "hourly")
    await make_due(platform, "hourly", ago="1 s")
    firings = await fired(platform, "hourly", times=2)
    await put(platform, "hourly", cron=HOURLY, job={"input": "And now?"})
    await make_due(platform, "hourly", ago="2 s")
    firings = await fired(platform, "hourly", times=3)
    await platform.wait_until_empty("SUBMIT")

    firings.sort(key=lambda firing: firing.decided_at)
    callers = [(await platform.events_of(str(one.job_id), JobSubmitted))[0].caller for one in firings]
    assert callers[0] == callers[1] != callers[2]
    assert len({one.job_id for one in firings}) == 3
    assert [one.version for one in firings] == [1, 1, 2]


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


async def test_a_run_by_hand_is_one_job_and_keeps_the_plan(platform: Platform):
    await platform.start("router", router=OFTEN)
    saved = await put(platform, "hourly", cron=HOURLY, enabled=False)
    first, again, other = [
        await platform.bus.ask(RunSchedule(tenant="default", name="hourly", run_id=run_id), Firing)
        for run_id in ("r1", "r1", "r2")
    ]
    await platform.wait_until_empty("SUBMIT")

    assert first.job_id == again.job_id != other.job_id
    job = await platform.job(str(first.job_id))
    assert job.life.schedule == FiredBy(schedule="hourly", version=1, due_at=first.due_at)
    assert {one.cause for one in (await get(platform, "hourly")).firings} == {"run"}
    assert saved.next_at is None


async def test_a_refused_firing_is_told_by_its_schedule(platform: Platform):
    await platform.start("router", router=OFTEN)
    await platform.put_agent("gone")
    await put(platform, "agentless", cron=HOURLY, job={"agent": "gone"})
    await platform.bus.ask(DeleteAgent(tenant="default", name="gone"), Deleted)
    await make_due(platform, "agentless")
    await fired(platform, "agentless")
    await platform.wait_until_empty("SUBMIT")

    [refused] = (await get(platform, "agentless")).firings

    assert refused.outcome == "refused"
    assert refused.reason.startswith("unknown_agent: no agent 'gone'")
    assert [letter["Wayline-Dead-Code"] for letter in await platform.dead_letters()] == ["unknown_agent"]
    [submitted, failed] = await platform.events(str(refused.job_id))
    assert isinstance(submitted, JobSubmitted)
    assert submitted.schedule is not None
    assert failed.type == "job.failed"


async def test_a_tenants_budget_refuses_a_scheduled_job(platform: Platform):
    async with ChatServer(lambda _: Say(text="Yes.")) as chat:
        router = RouterSettings(anthropic_base_url=chat.url, schedules_every_s=0.02)
        await platform.start("router", router=router)
        await platform.put_agent("dear", model="anthropic/claude-sonnet-5-5")
        await put(platform, "poor", cron=HOURLY, job={"agent": "dear"})
        empty = BudgetConfig.model_validate({"limit_usd": "0", "window": "month"})
        await platform.bus.ask(PutBudget(tenant="default", name="month", config=empty), Budget)
        await make_due(platform, "poor")
        await fired(platform, "poor")
        await platform.wait_until_empty("SUBMIT")

        [firing] = (await get(platform, "poor")).firings

    assert (firing.outcome, firing.status) == ("fired", "failed")
    assert firing.error is not None
    assert firing.error.code == "budget_exhausted"


async def test_a_disabled_tenants_schedules_wait_until_it_is_enabled(platform: Platform):
    await platform.start("router", router=OFTEN)
    await platform.bus.ask(CreateTenant(tenant="acme"), Tenant)
    await put(platform, "theirs", tenant="acme", cron=HOURLY)
    await platform.bus.ask(DisableTenant(tenant="acme"), Tenant)
    await make_due(platform, "theirs")
    await put(platform, "ours", cron=HOURLY)
    await make_due(platform, "ours")
    await fired(platform, "ours")
    waiting = await get(platform, "theirs", tenant="acme")
    await platform.bus.ask(EnableTenant(tenant="acme"), Tenant)

    [firing] = await fired(platform, "theirs", tenant="acme")

    assert waiting.firings == ()
    assert firing.outcome == "fired"


async def test_another_tenants_schedule_is_not_found_or_changed(platform: Platform):
    await platform.start("router", router=OFTEN)
    await platform.bus.ask(CreateTenant(tenant="acme"), Tenant)
    mine = await put(platform, "same", cron=HOURLY)
    theirs = await put(platform, "same", tenant="acme", cron="0 7 * * *")

    await put(platform, "only-mine", cron=HOURLY)

    with pytest.raises(Refused, match="no schedule 'only-mine'"):
        await get(platform, "only-mine", tenant="acme")
    with pytest.raises(Refused, match="no schedule 'only-mine'"):
        await platform.bus.ask(RunSchedule(tenant="acme", name="only-mine", run_id="r1"), Firing)
    await platform.bus.ask(DeleteSchedule(tenant="acme", name="same"), ScheduleDeleted)

    assert (mine.cron, theirs.cron) == (HOURLY, "0 7 * * *")
    assert await get(platform, "same") == mine
    assert (await platform.bus.ask(ListSchedules(tenant="acme"), ScheduleList)).schedules == ()


async def test_a_client_cannot_pass_a_job_off_as_a_schedules(platform: Platform):
    await platform.start("router", router=OFTEN)
    await put(platform, "hourly", cron=HOURLY)

    await platform.publish({**JOB, "job_id": "j1"}, headers={"Wayline-Schedule-Name": "hourly"})
    await platform.wait_until_empty("SUBMIT")

    [submitted] = await platform.events_of("j1", JobSubmitted)
    assert submitted.schedule is None
    assert (await get(platform, "hourly")).firings == ()


async def test_a_tenant_has_no_more_schedules_than_its_limit(platform: Platform):
    await platform.start("router", router=OFTEN)
    for number in range(3):
        await put(platform, f"s{number}", cron=HOURLY)

    with pytest.raises(Refused, match="WAYLINE_ROUTER_SCHEDULES_MAX") as refused:
        await put(platform, "s3", cron=HOURLY)
    changed = await put(platform, "s2", cron="5 * * * *")
    same = await put(platform, "s2", cron="5 * * * *")

    assert (refused.value.code, refused.value.status) == ("too_many_schedules", 409)
    assert (changed.version, same.version) == (2, 2)


async def test_a_large_input_is_submitted_whole_at_each_firing(platform: Platform):
    await platform.start("router", router=OFTEN)
    text = "word \x00 " * 9_000
    await put(platform, "large", cron=HOURLY, job={"input": text})
    await make_due(platform, "large")
    [firing] = await fired(platform, "large")
    await platform.wait_until_empty("SUBMIT")

    assert await JobLog(platform.bus, "default", str(firing.job_id)).last() is not None
    [submitted] = await platform.events_of(str(firing.job_id), JobSubmitted)
    assert submitted.job.input == text


async def test_a_schedule_over_http_from_its_creation_to_its_end(platform: Platform):
    await platform.start("router", "gateway", router=OFTEN)
    http = await platform.http()
    body = {"cron": "0 7 * * MON-FRI", "timezone": "Europe/Berlin", "job": JOB}

    created = await http.post("/v1/schedules/morning", json=body)
    twice = await http.post("/v1/schedules/morning", json=body)
    same = await http.put("/v1/schedules/morning", json=body)
    changed = await http.put("/v1/schedules/morning", json={**body, "overlap": "skip"})
    disabled = await http.post("/v1/schedules/morning/disable")
    ran = [await http.post("/v1/schedules/morning/run", headers={"Idempotency-Key": key}) for key in ("a", "a", "b")]
    await platform.wait_until_empty("SUBMIT")
    shown = (await http.get("/v1/schedules/morning")).json()
    job = (await http.get(f"/v1/jobs/{ran[0].json()['job_id']}")).json()
    deleted = await http.delete("/v1/schedules/morning")
    missing = await http.get("/v1/schedules/morning")

    assert [one.status_code for one in (created, twice, same, changed, disabled, *ran)] == [
        *(201, 409, 200, 200, 200),
        *(202, 202, 202),
    ]
    assert twice.json()["code"] == "schedule_exists"
    assert [one.json()["version"] for one in (created, same, changed, disabled)] == [1, 1, 2, 3]
    assert len(created.json()["next_firings"]) == 5
    assert (disabled.json()["next_at"], disabled.json()["enabled"]) == (None, False)
    jobs = [one.json()["job_id"] for one in ran]
    assert jobs[0] == jobs[1] != jobs[2]
    assert [(one["job_id"], one["status"]) for one in shown["firings"]] == [(jobs[2], "queued"), (jobs[0], "queued")]
    assert (job["schedule"]["schedule"], job["schedule"]["version"]) == ("morning", 3)
    assert (deleted.json(), missing.status_code) == ({"deleted": True}, 404)
    assert (await http.get("/v1/schedules")).json()["schedules"] == []


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"cron": "0 7 * *"}, "invalid_cron"),
    ({"cron": "0 0 30 2 *"}, "invalid_cron"),
    ({"timezone": "Europe/Atlantis"}, "unknown_timezone"),
    ({"cron": None, "at": "2020-01-01T00:00:00Z"}, "at_in_the_past"),
    ({"cron": None, "at": "2040-01-01T00:00:00"}, "invalid_request"),
    ({"at": "2040-01-01T00:00:00Z"}, "invalid_request"),
    ({"cron": None}, "invalid_request"),
    ({"job": {**JOB, "options": {"dry_run": True}}}, "invalid_request"),
    ({"job": {**JOB, "job_id": "j1"}}, "invalid_request"),
    ({"job": {**JOB, "agent": "nobody"}}, "unknown_agent"),
    ({"job": {**JOB, "input": "x" * 120_000}}, "invalid_request"),
]


async def test_what_cannot_be_kept_is_a_problem_that_helps(platform: Platform):
    await platform.start("router", "gateway", router=RouterSettings(schedules_every_s=3_600))
    http = await platform.http()

    for change, code in WRONG:
        refused = await http.put("/v1/schedules/s1", json={"cron": HOURLY, "job": JOB, **change})

        assert (refused.status_code, refused.json()["code"]) == (404 if code == "unknown_agent" else 422, code)
        assert refused.headers["content-type"] == "application/problem+json"
        assert len(refused.json()["detail"]) < 300


async def test_a_key_that_may_write_runs_schedules_and_changes_none(platform: Platform):
    await platform.start("router", "gateway", router=OFTEN)
    store = await platform.store("gateway")
    keys = {
        scope: {"Authorization": f"Bearer {await create_key(store, 'default', scope, scopes=('read', scope))}"}
        for scope in ("read", "write", "admin")
    }
    http = await platform.http()
    body = {"cron": HOURLY, "job": JOB}

    put = [(await http.put("/v1/schedules/s1", json=body, headers=key)).status_code for key in keys.values()]
    ran = [(await http.post("/v1/schedules/s1/run", headers=key)).status_code for key in keys.values()]
    changes = ("enable", "disable")
    changed = [(await http.post(f"/v1/schedules/s1/{one}", headers=keys["write"])).status_code for one in changes]
    gone = [(await http.delete("/v1/schedules/s1", headers=key)).status_code for key in keys.values()]

    assert (put, ran, changed, gone) == ([403, 403, 200], [403, 202, 403], [403, 403], [403, 403, 200])


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
