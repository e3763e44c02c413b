"""What the gateway keeps of a user or a job is counted and erased, and nothing of another tenant's."""

from datetime import UTC, datetime

from wayline.chassis import Bus, asks
from wayline.contracts.errors import NotFound
from wayline.contracts.forgetting import Erased, EraseFromGateway, Forget, Forgetting, GetForgetting
from wayline.contracts.knowledge import GetDocument
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running
from .others import Others
from .test_callers import bearer
from .test_submitting import JOB

NOON = datetime(2026, 5, 6, 12, tzinfo=UTC)


async def test_submissions_of_a_user_and_of_jobs_are_erased(gateway: Running, bus: Bus):
    headers = {"Idempotency-Key": "order-1"}
    first = (await gateway.client.post("/v1/jobs", json={**JOB, "user_id": "ann"}, headers=headers)).json()["job_id"]
    for job_id, user in (("of-bob", "bob"), ("kept", "cyd")):
        await gateway.client.post("/v1/jobs", json={**JOB, "user_id": user, "job_id": job_id})
    asked = EraseFromGateway(tenant="default", user_id="ann", job_ids=("of-bob",))

    elsewhere = await bus.ask(asked.model_copy(update={"tenant": "acme"}), Erased)
    counted = await bus.ask(asked.model_copy(update={"count_only": True}), Erased)
    erased = await bus.ask(asked, Erased)
    again = await bus.ask(asked, Erased)

    assert elsewhere.counts == again.counts == {}
    assert counted == erased == Erased(counts={"submissions": 2})
    assert (await gateway.client.get("/v1/jobs/of-bob")).status_code == 404
    assert (await gateway.client.get("/v1/jobs/kept")).status_code == 200
    # The key stands for nothing any more: the same request is another job.
    assert (await gateway.client.post("/v1/jobs", json=JOB, headers=headers)).json()["job_id"] != first


async def test_a_document_is_of_the_user_that_its_key_names(
    gateway: Running, platform: Platform, others: Others, bus: Bus
):
    store = await platform.store("gateway")
    ours = bearer(await create_key(store, "default", "ann's", scopes=("write",), user_id="ann"))
    text = {"name": "a.md", "text": "Words of hers."}
    await others.answer(GetDocument, NotFound("document", "a.md"))

    sent = await gateway.client.post("/v1/documents", json=text, headers=ours)
    refused = await gateway.client.post("/v1/documents", json={**text, "user_id": "bob"}, headers=ours)

    assert (sent.status_code, refused.status_code) == (202, 403)
    stored = await bus.js.get_msg("INDEX", 1)
    assert b'"user_id":"ann"' in (stored.data or b"")


async def test_a_key_forgets_its_own_user_and_an_administrator_anyone(gateway: Running, platform: Platform):
    asked: list[Forget | GetForgetting] = []

    async def answer(request: Forget | GetForgetting) -> Forgetting:
        asked.append(request)
        return Forgetting(forget_id="forget_1", what="user", step="stopping", name_sha256="0", asked_at=NOON)

    await platform.answer(asks(Forget, answer), asks(GetForgetting, answer))
    store = await platform.store("gateway")
    anns = bearer(await create_key(store, "default", "ann's", scopes=("read", "write"), user_id="ann"))
    writer = bearer(await create_key(store, "default", "app", scopes=("read", "write")))
    admin = bearer(await create_key(store, "default", "boss", scopes=("read", "write", "admin")))
    path, client = "/v1/forget", gateway.client

    own = await client.post(path, json={"user_id": "ann"}, headers=anns)
    anyone = await client.post(path, json={"user_id": "ann"}, headers=admin)
    await client.post(path, json={"subject": {"type": "company", "id": "acme"}}, headers=admin)
    await client.delete("/v1/jobs/j1", headers=anns)
    await client.get(own.headers["Location"], headers=anns)
    refused = [
        await client.post(path, json={"user_id": "bob"}, headers=anns),
        await client.post(path, json={"subject": {"type": "company", "id": "acme"}}, headers=anns),
        await client.post(path, json={"user_id": "ann"}, headers=writer),
        await client.delete("/v1/jobs/j1", headers=writer),
    ]

    assert (own.status_code, anyone.status_code, own.headers["Location"]) == (202, 202, "/v1/forget/forget_1")
    assert {one.status_code for one in refused} == {403}
    assert (await client.post(path, json={}, headers=admin)).status_code == 422
    both = {"user_id": "ann", "subject": {"type": "company", "id": "acme"}}
    assert (await client.post(path, json=both, headers=admin)).status_code == 422
    assert [one.model_dump(exclude_defaults=True) for one in asked] == [
        {"user_id": "ann", "asked_by": "ann's"},
        {"user_id": "ann", "asked_by": "boss"},
        {"subject_ref": {"type": "company", "id": "acme"}, "asked_by": "boss"},
        {"job_id": "j1", "of_user": "ann", "asked_by": "ann's"},
        {"forget_id": "forget_1", "of_user": "ann"},
    ]
