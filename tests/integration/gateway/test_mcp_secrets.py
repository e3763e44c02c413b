"""Secrets over HTTP: written by administrators, and never read back."""

from __future__ import annotations

from wayline.contracts.tenant_secrets import PutSecret
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import start_gateway
from .others import Others

CANARY = "canary-1"


async def test_a_secret_is_stored_by_administrators_and_shown_by_name(platform: Platform, others: Others):
    await others.answer_everything()
    store = await platform.store("gateway")
    keys = {scope: await create_key(store, "acme", scope, scopes=("read", scope)) for scope in ("write", "admin")}
    await store.close()
    gateway = await start_gateway(platform)
    admin, writer = ({"Authorization": f"Bearer {keys[scope]}"} for scope in ("admin", "write"))
    path = "/v1/mcp/secrets/BANK_TOKEN"

    stored = await gateway.client.put(path, json={"value": CANARY}, headers=admin)
    listed = await gateway.client.get("/v1/mcp/secrets", headers=writer)
    deleted = await gateway.client.delete(path, headers=admin)
    refused = [
        await gateway.client.put(path, json={"value": CANARY}, headers=writer),
        await gateway.client.delete(path, headers=writer),
        await gateway.client.put(path, json={"value": f"{CANARY}\0"}, headers=admin),
        await gateway.client.put("/v1/mcp/secrets/no name", json={"value": CANARY}, headers=admin),
    ]

    [asked] = [one for one in others.asked if isinstance(one, PutSecret)]
    assert (asked.tenant, asked.name, asked.value.get_secret_value()) == ("acme", "BANK_TOKEN", CANARY)
    assert [one.status_code for one in (stored, listed, deleted)] == [200, 200, 200]
    assert [one.status_code for one in refused] == [403, 403, 422, 422]
    assert CANARY not in "".join(one.text for one in (stored, listed, deleted, *refused))
