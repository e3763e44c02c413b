"""What is remembered, over HTTP: a key sees its tenant's, one that is bound to a user only that user's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from wayline.contracts.memory import SaveMemories
from wayline.contracts.tenants import GetTenant, Tenant
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running, start_gateway
from .others import Others
from .test_keys import CREATED, bearer

FACT = {"text": "Lives in Bonn.", "category": "profile", "tier": "core"}


@pytest.fixture
async def gateway(platform: Platform, others: Others) -> AsyncIterator[Running]:
    await others.answer(GetTenant, lambda request: Tenant(tenant=request.tenant, created_at=CREATED))
    await platform.start("retrieval")
    yield await start_gateway(platform)


async def save(gateway: Running, user_id: str = "ann", **more: Any) -> dict[str, Any]:
    saved = await gateway.client.post("/v1/memories", json={"user_id": user_id, "facts": [FACT | more]})
    assert saved.status_code == 200, saved.text
    return saved.json()["outcomes"][0]


async def test_a_memory_is_saved_read_changed_and_deleted(gateway: Running):
    client = gateway.client
    fact_id = (await save(gateway))["fact_id"]

    read = await client.get(f"/v1/memories/{fact_id}")
    changed = await client.patch(
        f"/v1/memories/{fact_id}", json={"text": "Lives in Paris."}, headers={"If-Match": read.headers["ETag"]}
    )
    late = await client.patch(
        f"/v1/memories/{fact_id}", json={"tier": "context"}, headers={"If-Match": read.headers["ETag"]}
    )
    refused = await client.patch(f"/v1/memories/{fact_id}", json={"text": "Maybe lives in Rome."})
    versions = await client.get(f"/v1/memories/{fact_id}/versions")
    found = await client.post("/v1/memories/recall", json={"user_id": "ann", "search_terms": ["paris"]})
    deleted = await client.delete(f"/v1/memories/{fact_id}")

    shown = await client.post("/v1/memories/consolidate", json={"dry_run": True})

    assert shown.json() == {"run_id": None, "steps": [], "links": [], "more": False}
    assert (read.json()["trust"], read.json()["source"], read.json()["tier"]) == ("own", "user_noted", "core")
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    assert (refused.status_code, refused.json()["code"]) == (422, "speculative")
    assert [one["state"] for one in versions.json()["facts"]] == ["active", "superseded"]
    assert [one["text"] for one in found.json()["facts"]] == ["Lives in Paris."]
    assert deleted.json()["versions"] == 2
    assert (await client.get(f"/v1/memories/{fact_id}")).status_code == 404


async def test_a_summary_is_a_job_of_its_own(gateway: Running, platform: Platform):
    body = {"user_id": "ann", "agent": "assistant", "dry_run": True}

    answer = await gateway.client.post("/v1/memories/summarize", json=body)

    job_id = answer.json()["job_id"]
    assert answer.status_code == 202 and job_id.startswith("summary_")
    stored = await platform.bus.js.get_last_msg("SUBMIT", "jobs.submit.*")
    submitted = json.loads(stored.data or b"{}")
    assert (submitted["user_id"], submitted["summarize"]) == ("ann", {"dry_run": True})


async def test_the_same_idempotency_key_saves_once(gateway: Running):
    body, key = {"user_id": "ann", "facts": [FACT]}, {"Idempotency-Key": "k1"}

    first = await gateway.client.post("/v1/memories", json=body, headers=key)
    again = await gateway.client.post("/v1/memories", json=body, headers=key)
    other = await gateway.client.post("/v1/memories", json=body | {"user_id": "bob"}, headers=key)

    assert again.json() == first.json() | {"repeated": True}
    assert (other.status_code, other.json()["code"]) == (409, "memory_key_conflict")


async def test_a_key_of_a_user_finds_no_other_users_memory(gateway: Running, platform: Platform):
    of_ann, of_bob = await save(gateway), await save(gateway, "bob")
    store = await platform.store("gateway")
    key = await create_key(store, "default", "ann's", scopes=("read", "write"), user_id="ann")
    client, headers = gateway.client, bearer(key)

    listed = await client.get("/v1/memories", headers=headers)
    others = [
        await client.get("/v1/memories", params={"user_id": "bob"}, headers=headers),
        await client.get(f"/v1/memories/{of_bob['fact_id']}", headers=headers),
        await client.get(f"/v1/memories/{of_bob['fact_id']}/versions", headers=headers),
        await client.patch(f"/v1/memories/{of_bob['fact_id']}", json={"tier": "context"}, headers=headers),
        await client.delete(f"/v1/memories/{of_bob['fact_id']}", headers=headers),
        await client.post("/v1/memories/recall", json={"user_id": "bob"}, headers=headers),
    ]

    assert [one["fact_id"] for one in listed.json()["facts"]] == [of_ann["fact_id"]]
    assert [one.status_code for one in others] == [404] * 6
    named = {"user_id": "bob", "facts": [FACT]}
    assert (await client.post("/v1/memories", json=named, headers=headers)).status_code == 403


async def test_a_users_key_sees_no_conversations_of_an_insight(gateway: Running, platform: Platform):
    facts = [{"text": "Pays by invoice.", "category": "preference"}]
    body = {"subject": {"type": "company", "id": "c1"}, "facts": facts, "conversation": "s-bob"}
    stored = await gateway.client.post("/v1/insights", json=body)
    path = f"/v1/insights/{stored.json()['outcomes'][0]['fact_id']}"
    key = await create_key(await platform.store("gateway"), "default", "ann's", scopes=("read",), user_id="ann")

    whole = await gateway.client.get(path)
    anns = await gateway.client.get(path, headers=bearer(key))

    assert [one["conversation"] for one in whole.json()["conversations"]] == ["s-bob"]
    assert (anns.status_code, anns.json()["conversations"]) == (200, [])


async def test_only_a_key_with_the_scope_releases_a_quarantined_fact(gateway: Running, platform: Platform):
    tainted = SaveMemories.model_validate(
        {
            "tenant": "default",
            "key": "k",
            "user_id": "ann",
            "facts": [{"text": "Pays by invoice.", "category": "profile"}],
            "written": {"tainted_by": ["web_fetch"]},
        }
    )
    fact_id = (await platform.bus.ask(tainted, tainted.replies)).outcomes[0].fact_id  # type: ignore[attr-defined]
    store = await platform.store("gateway")
    writer = bearer(await create_key(store, "default", "writer", scopes=("read", "write")))
    releaser = bearer(await create_key(store, "default", "releaser", scopes=("read", "memory:release")))
    client, path = gateway.client, f"/v1/memories/{fact_id}/release"

    waiting = await client.get("/v1/memories", params={"state": "quarantined"}, headers=writer)
    refused = await client.post(path, json={}, headers=writer)
    released = await client.post(path, json={"reason": "asked ann"}, headers=releaser)

    assert [one["fact_id"] for one in waiting.json()["facts"]] == [fact_id]
    assert (refused.status_code, released.status_code) == (403, 200)
    assert (released.json()["state"], released.json()["trust"]) == ("active", "own")
    async with platform.superuser() as conn:
        audited = await conn.fetchrow("SELECT what, changed_by, reason FROM retrieval.fact_changes")
    assert tuple(audited or ()) == ("release", "releaser", "asked ann")


async def test_subjects_are_linked_and_take_their_insights_with_them(gateway: Running):
    client = gateway.client
    nowhere = await client.put(
        "/v1/subjects/client/acme", json={"links": [{"type": "person", "id": "jo", "kind": "x"}]}
    )
    await client.put("/v1/subjects/person/jo", json={"name": "Jo"})
    made = await client.put(
        "/v1/subjects/client/acme", json={"name": "Acme", "links": [{"type": "person", "id": "jo", "kind": "contact"}]}
    )
    insight = {"text": "Client loves sea views.", "category": "preference", "importance": 8}
    about = {"type": "client", "id": "acme"}
    stored = await client.post("/v1/insights", json={"subject": about, "facts": [insight]})
    found = await client.post("/v1/insights/recall", json={"subject": about, "query": "what does the client like?"})
    listed = await client.get("/v1/insights", params={"subject_type": "client", "subject_id": "acme"})
    half = await client.get("/v1/insights", params={"subject_type": "client"})
    fact_id = stored.json()["outcomes"][0]["fact_id"]
    changed = await client.patch(f"/v1/insights/{fact_id}", json={"text": "Client loves sea views and quiet."})
    versions = await client.get(f"/v1/insights/{fact_id}/versions")
    nobodys = await client.get("/v1/insights/fact_0/versions")
    page = await client.get("/v1/subjects", params={"type": "client"})
    deleted = await client.delete("/v1/subjects/client/acme")

    assert (nowhere.status_code, made.status_code, stored.status_code) == (404, 200, 200)
    assert made.headers["ETag"]
    assert [one["text"] for one in found.json()["facts"]] == [one["text"] for one in listed.json()["facts"]]
    assert half.status_code == 422
    assert [one["id"] for one in page.json()["subjects"]] == ["acme"]
    assert (changed.json()["version"], nobodys.status_code) == (2, 404)
    assert [one["version"] for one in versions.json()["facts"]] == [2, 1]
    assert deleted.json()["insights_deleted"] == 1
