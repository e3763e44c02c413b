"""Schedules through whole services, under their tenants' rules; their moments are in test_firings.py."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio

from wayline.contracts.agents import DeleteAgent, Deleted
from wayline.contracts.budgets import Budget, BudgetConfig, PutBudget
from wayline.contracts.errors import Refused
from wayline.contracts.events import JobSubmitted
from wayline.contracts.jobs import FiredBy
from wayline.contracts.schedules import (
    DeleteSchedule,
    Firing,
    ListSchedules,
    RunSchedule,
    ScheduleDeleted,
    ScheduleList,
)
from wayline.contracts.tenants import DisableTenant, EnableTenant, Tenant
from wayline.gateway.adapters.keys import create_key
from wayline.journal import JobLog
from wayline.testkit import Platform

from .conftest import http_with_key
from .firings import HOURLY, JOB, OFTEN, fired, get, make_due, put

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(module_platform: Platform) -> Platform:
    """A router that fires soon, and a gateway; without an executor no job ends."""
    router = OFTEN.model_copy(update={"anthropic_base_url": "http://127.0.0.1:9"})
    await module_platform.start("router", "gateway", router=router)
    return module_platform


@pytest_asyncio.fixture(loop_scope="module")
async def platform(services: Platform) -> Platform:
    """The services as a tenant of the test's own sees them."""
    return await services.new_tenant()


async def test_all_jobs_of_a_version_are_linked_to_one_span(platform: Platform):
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


async def test_a_run_by_hand_is_one_job_and_keeps_the_plan(platform: Platform):
    saved = await put(platform, "hourly", cron=HOURLY, enabled=False)
    first, again, other = [
        await platform.bus.ask(RunSchedule(tenant=platform.tenant, name="hourly", run_id=run_id), Firing)
        for run_id in ("r1", "r1", "r2")
    ]
    await platform.wait_until_empty("SUBMIT")

    assert first.job_id == again.job_id != other.job_id
    job = await platform.job(str(first.job_id))
    assert job.life.schedule == FiredBy(schedule="hourly", version=1, due_at=first.due_at)
    assert {one.cause for one in (await get(platform, "hourly")).firings} == {"run"}
    assert saved.next_at is None


async def test_a_refused_firing_is_told_by_its_schedule(platform: Platform):
    await platform.put_agent("gone")
    await put(platform, "agentless", cron=HOURLY, job={"agent": "gone"})
    await platform.bus.ask(DeleteAgent(tenant=platform.tenant, name="gone"), Deleted)
    await make_due(platform, "agentless")
    await fired(platform, "agentless")
    await platform.wait_until_empty("SUBMIT")

    [refused] = (await get(platform, "agentless")).firings

    assert refused.outcome == "refused"
    assert refused.reason.startswith("unknown_agent: no agent 'gone'")
    letters = [one for one in await platform.dead_letters() if one["Wayline-Tenant"] == platform.tenant]
    assert [letter["Wayline-Dead-Code"] for letter in letters] == ["unknown_agent"]
    [submitted, failed] = await platform.events(str(refused.job_id))
    assert isinstance(submitted, JobSubmitted)
    assert submitted.schedule is not None
    assert failed.type == "job.failed"


async def test_a_tenants_budget_refuses_a_scheduled_job(platform: Platform):
    await platform.put_agent("dear", model="anthropic/claude-sonnet-5-5")
    await put(platform, "poor", cron=HOURLY, job={"agent": "dear"})
    empty = BudgetConfig.model_validate({"limit_usd": "0", "window": "month"})
    await platform.bus.ask(PutBudget(tenant=platform.tenant, name="month", config=empty), Budget)
    await make_due(platform, "poor")
    await fired(platform, "poor")
    await platform.wait_until_empty("SUBMIT")

    [firing] = (await get(platform, "poor")).firings

    assert (firing.outcome, firing.status) == ("fired", "failed")
    assert firing.error is not None
    assert firing.error.code == "budget_exhausted"


async def test_a_disabled_tenants_schedules_wait_until_it_is_enabled(platform: Platform):
    other = await platform.new_tenant()
    await put(other, "theirs", cron=HOURLY)
    await platform.bus.ask(DisableTenant(tenant=other.tenant), Tenant)
    await make_due(other, "theirs")
    await put(platform, "ours", cron=HOURLY)
    await make_due(platform, "ours")
    await fired(platform, "ours")
    waiting = await get(other, "theirs")
    await platform.bus.ask(EnableTenant(tenant=other.tenant), Tenant)

    [firing] = await fired(other, "theirs")

    assert waiting.firings == ()
    assert firing.outcome == "fired"


async def test_another_tenants_schedule_is_not_found_or_changed(platform: Platform):
    other = await platform.new_tenant()
    mine = await put(platform, "same", cron=HOURLY)
    theirs = await put(other, "same", cron="0 7 * * *")

    await put(platform, "only-mine", cron=HOURLY)

    with pytest.raises(Refused, match="no schedule 'only-mine'"):
        await get(other, "only-mine")
    with pytest.raises(Refused, match="no schedule 'only-mine'"):
        await platform.bus.ask(RunSchedule(tenant=other.tenant, name="only-mine", run_id="r1"), Firing)
    await platform.bus.ask(DeleteSchedule(tenant=other.tenant, name="same"), ScheduleDeleted)

    assert (mine.cron, theirs.cron) == (HOURLY, "0 7 * * *")
    assert await get(platform, "same") == mine
    assert (await platform.bus.ask(ListSchedules(tenant=other.tenant), ScheduleList)).schedules == ()


async def test_a_client_cannot_pass_a_job_off_as_a_schedules(services: Platform):
    await put(services, "hourly", cron=HOURLY)

    await services.publish({**JOB, "job_id": "j1"}, headers={"Wayline-Schedule-Name": "hourly"})
    await services.wait_until_empty("SUBMIT")

    [submitted] = await services.events_of("j1", JobSubmitted)
    assert submitted.schedule is None
    assert (await get(services, "hourly")).firings == ()


async def test_a_tenant_has_no_more_schedules_than_its_limit(platform: Platform):
    for number in range(3):
        await put(platform, f"s{number}", cron=HOURLY)

    with pytest.raises(Refused, match="WAYLINE_ROUTER_SCHEDULES_MAX") as refused:
        await put(platform, "s3", cron=HOURLY)
    changed = await put(platform, "s2", cron="5 * * * *")
    same = await put(platform, "s2", cron="5 * * * *")

    assert (refused.value.code, refused.value.status) == ("too_many_schedules", 409)
    assert (changed.version, same.version) == (2, 2)


async def test_a_large_input_is_submitted_whole_at_each_firing(platform: Platform):
    text = "word \x00 " * 9_000
    await put(platform, "large", cron=HOURLY, job={"input": text})
    await make_due(platform, "large")
    [firing] = await fired(platform, "large")
    await platform.wait_until_empty("SUBMIT")

    assert await JobLog(platform.bus, platform.tenant, str(firing.job_id)).last() is not None
    [submitted] = await platform.events_of(str(firing.job_id), JobSubmitted)
    assert submitted.job.input == text


async def test_a_schedule_over_http_from_its_creation_to_its_end(platform: Platform):
    http = await http_with_key(platform)
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
    http = await http_with_key(platform)

    for change, code in WRONG:
        refused = await http.put("/v1/schedules/s1", json={"cron": HOURLY, "job": JOB, **change})

        assert (refused.status_code, refused.json()["code"]) == (404 if code == "unknown_agent" else 422, code)
        assert refused.headers["content-type"] == "application/problem+json"
        assert len(refused.json()["detail"]) < 300


async def test_a_key_that_may_write_runs_schedules_and_changes_none(platform: Platform):
    store = await platform.store("gateway")
    keys = {
        scope: {"Authorization": f"Bearer {await create_key(store, platform.tenant, scope, scopes=('read', scope))}"}
        for scope in ("read", "write", "admin")
    }
    http = await http_with_key(platform)
    body = {"cron": HOURLY, "job": JOB}

    put = [(await http.put("/v1/schedules/s1", json=body, headers=key)).status_code for key in keys.values()]
    ran = [(await http.post("/v1/schedules/s1/run", headers=key)).status_code for key in keys.values()]
    changes = ("enable", "disable")
    changed = [(await http.post(f"/v1/schedules/s1/{one}", headers=keys["write"])).status_code for one in changes]
    gone = [(await http.delete("/v1/schedules/s1", headers=key)).status_code for key in keys.values()]

    assert (put, ran, changed, gone) == ([403, 403, 200], [403, 202, 403], [403, 403], [403, 403, 200])
