"""API keys and tenants over HTTP: who may create, see and revoke what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wayline.chassis import Bus
from wayline.contracts import agents as a
from wayline.contracts.errors import NotFound
from wayline.contracts.tenants import GetTenant, Tenant
from wayline.gateway.adapters import keys as remembered
from wayline.gateway.adapters import router as asked
from wayline.gateway.adapters.keys import create_key
from wayline.store import Store
from wayline.testkit import Platform
from wayline.testkit.walks import cases

from .conftest import Running, start_gateway
from .others import Others

JOB = {"agent": "assistant", "input": "hello"}
CREATED = datetime(2026, 11, 1, tzinfo=UTC)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "FRESH_S", 0.0)
    monkeypatch.setattr(asked, "FRESH_S", 0.0)
    monkeypatch.setattr(asked, "AWAY_S", 0.0)


@pytest.fixture
async def store(platform: Platform) -> AsyncIterator[Store]:
    store = await platform.store("gateway")
    yield store
    await store.close()


@pytest.fixture
async def tenants(others: Others) -> dict[str, Tenant]:
    """The tenants that the router knows."""
    known = {name: Tenant(tenant=name, created_at=CREATED) for name in ("default", "acme", "globex")}

    def answer(request: Any) -> Any:
        return known.get(request.tenant) or NotFound("tenant", request.tenant)

    await others.answer(GetTenant, answer)
    return known


async def test_a_created_key_is_shown_once_and_works(gateway: Running, tenants: dict[str, Tenant], store: Store):
    operator = await gateway.client.post(
        "/v1/keys", json={"name": "operator", "scopes": ["read", "write", "admin", "operator"]}
    )
    headers = bearer(operator.json()["key"])
    created = await gateway.client.post("/v1/keys", json={"name": "ci", "tenant": "acme"}, headers=headers)
    key = created.json()
    submitted = await gateway.client.post("/v1/jobs", json=JOB, headers=bearer(key["key"]))
    listed = (await gateway.client.get("/v1/keys", params={"tenant": "acme"}, headers=headers)).json()

    assert (operator.status_code, created.status_code, submitted.status_code) == (201, 201, 202)
    assert (key["tenant"], key["scopes"], key["expires_at"]) == ("acme", ["read", "write"], None)
    [shown] = listed["keys"]
    assert shown["prefix"] == key["key"][: len(shown["prefix"])]
    assert shown["last_used_at"] is not None
    assert key["key"] not in str(listed)
    kept = await store.fetch("acme", "SELECT * FROM api_keys")
    assert key["key"].split("_", 2)[2] not in str([dict(row) for row in kept])


async def test_a_revoked_key_works_no_longer(gateway: Running, tenants: dict[str, Tenant], store: Store):
    operator, other = [await create_key(store, "default", name) for name in ("operator", "other")]
    wanted = other.split("_")[1]

    before = await gateway.client.get("/v1/jobs/x", headers=bearer(other))
    revoked = await gateway.client.delete(f"/v1/keys/{wanted}", headers=bearer(operator))
    after = await gateway.client.get("/v1/jobs/x", headers=bearer(other))
    again = await gateway.client.delete(f"/v1/keys/{wanted}", headers=bearer(operator))
    left = (await gateway.client.get("/v1/keys", headers=bearer(operator))).json()["keys"]
    whole = (await gateway.client.get("/v1/keys?revoked=true", headers=bearer(operator))).json()["keys"]

    assert [before.status_code, after.status_code] == [404, 401]
    assert [revoked.json()["revoked"], again.json()["revoked"]] == [True, False]
    assert ([key["name"] for key in left], len(whole)) == (["operator"], 2)


async def test_an_admin_manages_only_its_own_tenants_keys(gateway: Running, tenants: dict[str, Tenant], store: Store):
    admin = bearer(await create_key(store, "acme", "admin", scopes=("read", "admin")))
    operator = await create_key(store, "acme", "operator")
    foreign = await create_key(store, "globex", "theirs")
    client = gateway.client

    own = await client.post("/v1/keys", json={"name": "more", "scopes": ["read"]}, headers=admin)
    other = await client.post("/v1/keys", json={"name": "x", "tenant": "globex", "scopes": ["read"]}, headers=admin)
    more = await client.post("/v1/keys", json={"name": "x", "scopes": ["read", "write"]}, headers=admin)
    listed = await client.get("/v1/keys?tenant=globex", headers=admin)
    revoked = await client.delete(f"/v1/keys/{foreign.split('_')[1]}", headers=admin)
    above = await client.delete(f"/v1/keys/{operator.split('_')[1]}", headers=admin)
    tenant = await client.post("/v1/tenants", json={"tenant": "new"}, headers=admin)
    mine, theirs = [await client.get(f"/v1/tenants/{name}", headers=admin) for name in ("acme", "globex")]

    assert own.status_code == 201
    assert [a.status_code for a in (other, more, listed, above, tenant)] == [403] * 5
    assert "lacks write" in more.json()["detail"]
    assert [revoked.status_code, mine.status_code, theirs.status_code] == [404, 200, 404]


async def test_a_key_needs_the_scope_admin_to_manage_keys(gateway: Running, store: Store):
    writer = bearer(await create_key(store, "acme", "writer", scopes=("read", "write")))

    answers = [
        await gateway.client.get("/v1/keys", headers=writer),
        await gateway.client.post("/v1/keys", json={"name": "x"}, headers=writer),
        await gateway.client.get("/v1/tenants", headers=writer),
    ]

    assert [answer.status_code for answer in answers] == [403] * 3


async def test_the_first_key_must_be_able_to_create_others(gateway: Running, tenants: dict[str, Tenant]):
    refused = await gateway.client.post("/v1/keys", json={"name": "laptop"})
    still = await gateway.client.get("/v1/jobs/x")

    assert (refused.status_code, refused.json()["code"]) == (409, "first_key_needs_operator")
    assert "--scopes read,write,admin,operator" in refused.json()["detail"]
    assert still.status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    cases(
        [
            ({"name": "x", "tenant": "nobody", "scopes": ["operator"]}, 404),
            ({"name": "x", "scopes": []}, 422),
            ({"name": "x", "scopes": ["root"]}, 422),
            ({"name": "x", "tenant": "No Tenant"}, 422),
            ({"name": "x", "expires_at": "2020-01-01T00:00:00Z"}, 422),
            ({"name": ""}, 422),
        ]
    ),
)
async def test_a_key_that_cannot_be_is_refused(
    gateway: Running, tenants: dict[str, Tenant], body: dict[str, Any], status: int
):
    assert (await gateway.client.post("/v1/keys", json=body)).status_code == status


async def test_a_key_expires(gateway: Running, tenants: dict[str, Tenant], store: Store):
    operator = bearer(await create_key(store, "default", "operator"))
    soon = datetime.now(UTC) + timedelta(hours=1)
    body = {"name": "ci", "scopes": ["read"], "expires_at": soon.isoformat()}
    key = (await gateway.client.post("/v1/keys", json=body, headers=operator)).json()
    before = await gateway.client.get("/v1/jobs/x", headers=bearer(key["key"]))

    await store.execute("default", "UPDATE api_keys SET expires_at = now() WHERE id = $1", key["id"])
    after = await gateway.client.get("/v1/jobs/x", headers=bearer(key["key"]))

    assert [before.status_code, after.status_code] == [404, 401]


async def test_a_tenant_has_only_so_many_valid_keys(platform: Platform, tenants: dict[str, Tenant], store: Store):
    operator = bearer(await create_key(store, "default", "operator"))
    gateway = await start_gateway(platform, keys_max=1)

    first, second = [
        await gateway.client.post("/v1/keys", json={"name": "x", "tenant": "acme"}, headers=operator) for _ in range(2)
    ]

    assert (first.status_code, second.status_code, second.json()["code"]) == (201, 409, "too_many_keys")
    assert "WAYLINE_GATEWAY_KEYS_MAX" in second.json()["detail"]


async def test_a_key_of_an_unknown_or_disabled_tenant_is_refused(
    gateway: Running, tenants: dict[str, Tenant], store: Store, bus: Bus
):
    unknown, disabled = [bearer(await create_key(store, tenant, "key")) for tenant in ("nobody", "acme")]
    tenants["acme"] = Tenant(
        tenant="acme", created_at=CREATED, disabled_at=CREATED, disabled_reason="the contract has ended"
    )

    nobody = await gateway.client.post("/v1/jobs", json=JOB, headers=unknown)
    acme = await gateway.client.post("/v1/jobs", json=JOB, headers=disabled)
    read = await gateway.client.get("/v1/jobs/x", headers=disabled)
    del tenants["acme"]
    gone = await gateway.client.get("/v1/jobs/x", headers=disabled)

    assert [(x.status_code, x.json()["code"]) for x in (nobody, acme, read, gone)] == [
        (403, "unknown_tenant"),
        (403, "tenant_disabled"),
        (403, "tenant_disabled"),
        (403, "unknown_tenant"),
    ]
    assert "the contract has ended" in acme.json()["detail"]
    assert (await bus.js.stream_info("SUBMIT")).state.messages == 0


async def test_a_caller_cannot_disable_its_own_tenant(gateway: Running, tenants: dict[str, Tenant]):
    refused = await gateway.client.post("/v1/tenants/default/disable")

    assert (refused.status_code, refused.json()["code"]) == (409, "own_tenant")


async def test_an_unknown_agent_is_refused_before_anything_is_on_the_bus(gateway: Running, others: Others, bus: Bus):
    await others.answer(a.GetAgent, lambda asked: NotFound("agent", asked.name))

    refused = await gateway.client.post("/v1/jobs?wait=5", json={**JOB, "agent": "nobody"})

    assert (refused.status_code, refused.json()["code"]) == (404, "unknown_agent")
    assert "'nobody'" in refused.json()["detail"]
    assert (await bus.js.stream_info("SUBMIT")).state.messages == 0


async def test_an_accepted_job_repeated_without_its_agent_is_not_refused(gateway: Running, others: Others, bus: Bus):
    first = await gateway.client.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "k1"})
    await others.answer(a.GetAgent, lambda asked: NotFound("agent", asked.name))

    again = await gateway.client.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "k1"})
    new = await gateway.client.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "k2"})

    assert (first.status_code, again.status_code, new.status_code) == (202, 202, 404)
    assert first.json()["job_id"] == again.json()["job_id"]
    assert (await bus.js.stream_info("SUBMIT")).state.messages == 1


async def test_jobs_are_accepted_while_the_router_is_away(gateway: Running, store: Store):
    acme = bearer(await create_key(store, "acme", "key"))

    assert (await gateway.client.post("/v1/jobs", json=JOB, headers=acme)).status_code == 202
