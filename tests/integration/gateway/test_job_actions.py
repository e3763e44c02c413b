"""One action on many jobs: to each once, with the rights of its key, and on after whatever stops it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from wayline.chassis import Bus
from wayline.contracts import headers as h
from wayline.contracts.errors import Reject, Unavailable
from wayline.contracts.forgetting import Erased, EraseFromGateway
from wayline.contracts.job_tags import TaggedJobs, TagJobs
from wayline.contracts.jobs import Cancel, JobView, Signal, Status, SubmitJob
from wayline.contracts.traces import JobPage, ListJobs
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.handlers.recovery import perform_actions
from wayline.gateway.shapes.limits import MeterRates, RateBody
from wayline.testkit import Platform, until

from .conftest import Running
from .others import Others
from .story import Story

JOBS = [f"j{number:02}" for number in range(7)]


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def listed(asked: ListJobs, *, users: dict[str, str] | None = None) -> JobPage:
    """Answer as tracing does: jobs in their order, those of a user where one is asked for, `limit` a page."""
    of_user = (users or {}).get
    known = [job_id for job_id in JOBS if asked.user_id in (None, of_user(job_id))]
    if asked.job_ids is not None:
        known = [job_id for job_id in known if job_id in asked.job_ids]
    behind = [job_id for job_id in known if asked.cursor is None or job_id > asked.cursor]
    page = behind[: asked.limit]
    more = page[-1] if len(behind) > asked.limit else None
    views = (JobView(job_id=job_id, status=Status.RUNNING, agent="assistant") for job_id in page)
    return JobPage(jobs=tuple(views), next_cursor=more)


async def told(bus: Bus) -> list[str]:
    """The jobs that were told to stop, in that order."""
    found: list[str] = []
    info = await bus.js.stream_info("SIGNALS")
    for sequence in range(1, info.state.last_seq + 1):
        message = await bus.js.get_msg("SIGNALS", sequence)
        signal = Signal.from_wire(message.data or b"", message.subject or "")
        if isinstance(signal.signal, Cancel):
            found.append(signal.job_id)
    return found


async def ended(gateway: Running, action: dict[str, Any], **headers: Any) -> dict[str, Any]:
    """The action once it is done."""

    async def done() -> dict[str, Any] | None:
        now = (await gateway.client.get(f"/v1/jobs/actions/{action['action_id']}", **headers)).json()
        return now if now["state"] == "done" else None

    return await until(done, why="the action is done")


async def test_a_cancel_reaches_every_job_of_a_filter_once(
    gateway: Running, others: Others, bus: Bus, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(perform_actions, "PAGE", 3)
    await others.answer(ListJobs, listed)
    for job_id in JOBS:
        story = Story(bus, "default", job_id)
        await (story.tell() if job_id == "j03" else story.begin())
    body = {"action": "cancel", "filter": {"agent": ["assistant"]}}
    key = {"Idempotency-Key": "stop-all"}

    looked = await gateway.client.post("/v1/jobs/actions", json={**body, "dry_run": True})
    untouched = await told(bus)
    action = await gateway.client.post("/v1/jobs/actions", json=body, headers=key)
    done = await ended(gateway, action.json())
    again = await gateway.client.post("/v1/jobs/actions", json=body, headers=key)
    other = await gateway.client.post("/v1/jobs/actions", json={**body, "limit": 2}, headers=key)
    two = await gateway.client.post("/v1/jobs/actions", json={**body, "limit": 2})
    await ended(gateway, two.json())

    assert (looked.status_code, looked.json()["counts"], untouched) == (200, {"done": 6, "already": 1}, [])
    assert (action.status_code, done["counts"], done["more"]) == (202, {"done": 6, "already": 1}, False)
    assert again.json()["action_id"] == action.json()["action_id"] and other.status_code == 409
    assert await told(bus) == [job_id for job_id in JOBS if job_id != "j03"] + JOBS[:2]
    page = (await gateway.client.get("/v1/jobs/actions?limit=1")).json()
    rest = (await gateway.client.get(f"/v1/jobs/actions?cursor={page['next_cursor']}")).json()
    assert [one["action_id"] for one in page["actions"] + rest["actions"]] == [
        two.json()["action_id"],
        action.json()["action_id"],
    ]


async def test_no_condition_is_dropped_by_a_tracing_of_before(gateway: Running, others: Others, bus: Bus):
    await others.answer(ListJobs, listed)
    await Story(bus, "default", JOBS[0]).begin()

    body = {"action": "cancel", "filter": {"cites": "tides"}}
    looked = await gateway.client.post("/v1/jobs/actions", json={**body, "dry_run": True})
    action = (await gateway.client.post("/v1/jobs/actions", json=body)).json()

    async def waits() -> dict[str, Any] | None:
        now = (await gateway.client.get(f"/v1/jobs/actions/{action['action_id']}")).json()
        return now if now["waits_for"] else None

    waiting = await until(waits, why="the action waits")
    found = await gateway.client.get("/v1/jobs?cites=tides")
    assert (looked.status_code, found.status_code, waiting["state"]) == (503, 503, "running")
    assert "does not know `cites`" in waiting["waits_for"]
    assert await told(bus) == []


async def test_an_action_goes_on_where_it_was_interrupted(
    gateway: Running, others: Others, bus: Bus, platform: Platform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(perform_actions, "PAGE", 4)
    await others.answer(ListJobs, listed)
    for job_id in JOBS:
        await Story(bus, "default", job_id).begin()
    stops = iter([False] * 5 + [True])
    cancel = perform_actions.cancel_job

    async def interrupted(*given: Any) -> Any:
        if next(stops, False):
            raise Unavailable("the bus", after_s=0)
        return await cancel(*given)

    monkeypatch.setattr(perform_actions, "cancel_job", interrupted)

    action = await gateway.client.post("/v1/jobs/actions", json={"action": "cancel", "filter": {}})
    done = await ended(gateway, action.json())

    assert (done["counts"], done["waits_for"]) == ({"done": len(JOBS)}, None)
    assert await told(bus) == JOBS


async def test_a_key_of_one_user_acts_on_that_users_jobs_alone(
    gateway: Running, others: Others, bus: Bus, platform: Platform
):
    users = {"j00": "ann", "j01": "bob"}
    await others.answer(ListJobs, lambda asked: listed(asked, users=users))
    for job_id in ("j00", "j01"):
        job = SubmitJob(tenant="default", job_id=job_id, agent="assistant", input="why?", user_id=users[job_id])
        await Story(bus, "default", job_id).begin(job)
    store = await platform.store("gateway")
    anns = bearer(await create_key(store, "default", "ann's", scopes=("read", "write"), user_id="ann"))
    bobs = bearer(await create_key(store, "default", "bob's", scopes=("read", "write"), user_id="bob"))
    body = {"action": "cancel", "job_ids": ["j00", "j01", "none"], "reason": "enough"}

    action = (await gateway.client.post("/v1/jobs/actions", json=body, headers=anns)).json()
    done = await ended(gateway, action, headers=anns)
    hidden = await gateway.client.get(f"/v1/jobs/actions/{action['action_id']}", headers=bobs)
    refused = await gateway.client.post(
        "/v1/jobs/actions", json={"action": "cancel", "filter": {"user_id": "bob"}}, headers=anns
    )
    await platform.bus.ask(EraseFromGateway(tenant="default", job_ids=("j00",)), Erased)
    gone = await gateway.client.get(f"/v1/jobs/actions/{action['action_id']}", headers=anns)

    assert done["counts"] == {"done": 1, "refused": 2}
    assert {one["job_id"] for one in done["refused"]} == {"j01", "none"} and await told(bus) == ["j00"]
    assert (hidden.status_code, refused.status_code, gone.status_code) == (404, 403, 404)


async def test_tags_are_given_page_by_page_and_wrong_actions_are_refused(gateway: Running, others: Others):
    await others.answer(ListJobs, listed)
    await others.answer(TagJobs, lambda asked: TaggedJobs(job_ids=asked.job_ids[1:]))
    body = {"action": "tag", "filter": {"status": ["running"]}, "add_tags": ["case:7"]}

    action = await gateway.client.post("/v1/jobs/actions", json=body)
    done = await ended(gateway, action.json())
    wrong = [
        {"action": "tag", "filter": {}},
        {"action": "raise", "filter": {}},
        {"action": "cancel"},
        {"action": "cancel", "filter": {"state": "x"}},
        {"action": "cancel", "filter": {}, "add_tags": ["a:b"]},
    ]

    assert done["counts"] == {"done": len(JOBS) - 1, "refused": 1}
    assert [one for one in others.asked if isinstance(one, TagJobs)] == [
        TagJobs(tenant="default", job_ids=tuple(JOBS), add=("case:7",))
    ]
    for one in wrong:
        assert (await gateway.client.post("/v1/jobs/actions", json=one)).status_code == 422, one


async def test_forks_are_counted_by_rates_and_end_with_their_key(
    gateway: Running, others: Others, bus: Bus, platform: Platform
):
    await others.answer(ListJobs, listed)
    for job_id in JOBS[:3]:
        await Story(bus, "default", job_id).fail()
    store = await platform.store("gateway")
    limits = MeterRates(jobs=RateBody(per_minute=1, burst=2))
    secret = await create_key(store, "default", "ci", scopes=("read", "write"), limits=limits)
    admins = bearer(await create_key(store, "default", "admin"))
    body = {"action": "fork", "job_ids": JOBS[:3], "budget_usd": "0.5"}

    action = (await gateway.client.post("/v1/jobs/actions", json=body, headers=bearer(secret))).json()
    address = f"/v1/jobs/actions/{action['action_id']}"

    async def now(**wanted: Any) -> dict[str, Any] | None:
        told = (await gateway.client.get(address, headers=admins)).json()
        return told if {name: told[name] for name in wanted} == wanted else None

    waiting = await until(lambda: now(counts={"done": 2}), why="two forks are begun")
    key_id = secret.split("_")[1]
    await gateway.client.delete(f"/v1/keys/{key_id}", headers=admins)
    await store.execute("default", "UPDATE job_actions SET free_at = now()")
    stopped = await until(lambda: now(state="stopped"), why="the action ends with its key")

    assert "this key may begin 1 jobs a minute" in waiting["waits_for"]
    assert stopped["counts"] == {"done": 2} and "revoked" in stopped["waits_for"]
    submitted = await bus.js.get_msg("SUBMIT", 1)
    assert json.loads((submitted.headers or {})[h.SUBMITTED_BY]) == {"how": "key", "name": "ci", "key_id": key_id}


async def test_an_action_that_tracing_refuses_ends_with_the_reason(gateway: Running, others: Others):
    await others.answer(ListJobs, Reject("no such order", code="invalid_query"))

    action = (await gateway.client.post("/v1/jobs/actions", json={"action": "cancel", "filter": {}})).json()

    async def stopped() -> dict[str, Any] | None:
        told = (await gateway.client.get(f"/v1/jobs/actions/{action['action_id']}")).json()
        return told if told["state"] == "stopped" else None

    assert (await until(stopped, why="it ends"))["waits_for"] == "no such order"


async def test_a_repeated_action_is_known_while_five_others_go_on(gateway: Running, others: Others):
    await others.answer(ListJobs, Unavailable("tracing"))
    body = {"action": "cancel", "filter": {}}
    keys = [{"Idempotency-Key": f"k{number}"} for number in range(6)]
    first = await gateway.client.post("/v1/jobs/actions", json=body, headers=keys[0])
    await gateway.client.post(f"/v1/jobs/actions/{first.json()['action_id']}/stop")
    many = await asyncio.gather(
        *(gateway.client.post("/v1/jobs/actions", json=body, headers={"Idempotency-Key": f"m{n}"}) for n in range(12))
    )

    again = await gateway.client.post("/v1/jobs/actions", json=body, headers=keys[0])

    assert sorted(answer.status_code for answer in many) == [202] * 5 + [409] * 7
    assert (again.status_code, again.json()["state"]) == (202, "stopped")
