"""Servers over HTTP: saved by administrators of their own tenant, shown without secrets."""

from __future__ import annotations

from wayline.contracts.errors import Conflict
from wayline.contracts.mcp_servers import (
    MASK,
    ApproveDefinitions,
    AuthorizeServer,
    EnableServer,
    FinishAuthorization,
    GetServer,
    PutServer,
    TryServer,
)
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running, start_gateway
from .others import Others

HASH = "a" * 64
BANK = {"url": "https://bank.example/mcp", "headers": {"Authorization": "Bearer canary-1"}}


async def test_a_server_is_saved_with_its_secrets_and_shown_with_masks(gateway: Running, others: Others):
    await others.answer(PutServer)
    await others.answer(GetServer)

    saved = await gateway.client.put("/v1/mcp/servers/bank", json=BANK)
    shown = await gateway.client.get("/v1/mcp/servers/bank")

    asked = next(one for one in others.asked if isinstance(one, PutServer))
    assert asked.config.headers["Authorization"].get_secret_value() == "Bearer canary-1"
    assert (asked.tenant, asked.name) == ("default", "bank")
    assert saved.status_code == shown.status_code == 200
    assert shown.json()["config"]["headers"] == {"X": MASK}


async def test_only_administrators_change_servers(platform: Platform, others: Others):
    await others.answer_everything()
    store = await platform.store("gateway")
    reader = await create_key(store, "acme", "laptop", scopes=("read", "write"))
    await store.close()
    gateway = await start_gateway(platform)
    headers = {"Authorization": f"Bearer {reader}"}

    paths = ("", "/bank", "/bank/impact")
    read = [await gateway.client.get(f"/v1/mcp/servers{path}", headers=headers) for path in paths]
    changes = [
        await gateway.client.put("/v1/mcp/servers/bank", json=BANK, headers=headers),
        await gateway.client.delete("/v1/mcp/servers/bank", headers=headers),
        await gateway.client.post("/v1/mcp/servers/bank/enable", headers=headers),
        await gateway.client.post("/v1/mcp/servers/bank/disable", headers=headers),
        await gateway.client.post("/v1/mcp/servers/bank/test", headers=headers),
        await gateway.client.post("/v1/mcp/servers/test", json=BANK, headers=headers),
        await gateway.client.post("/v1/mcp/servers/bank/approve", json={"sha256": [HASH]}, headers=headers),
        await gateway.client.post("/v1/mcp/servers/bank/impact", json=BANK, headers=headers),
        await gateway.client.post("/v1/mcp/servers/bank/authorize", headers=headers),
        await gateway.client.delete("/v1/mcp/servers/bank/authorization", headers=headers),
    ]

    assert [answer.status_code for answer in read] == [200] * 3
    assert [answer.status_code for answer in changes] == [403] * 10


async def test_a_wrong_server_is_refused_without_its_secrets(gateway: Running, others: Others):
    await others.answer(PutServer, Conflict("'bank' is the name of a server of this installation"))

    both = await gateway.client.put("/v1/mcp/servers/bank", json={**BANK, "command": "npx"})
    header = await gateway.client.put("/v1/mcp/servers/bank", json={**BANK, "headers": {"Host": "canary-2"}})
    taken = await gateway.client.put("/v1/mcp/servers/bank", json=BANK)

    assert [both.status_code, header.status_code, taken.status_code] == [422, 422, 409]
    assert "either `url` or `command`" in both.text
    assert "canary" not in both.text + header.text + taken.text


async def test_enabling_and_disabling_ask_for_the_state(gateway: Running, others: Others):
    await others.answer(EnableServer)

    for verb in ("enable", "disable"):
        assert (await gateway.client.post(f"/v1/mcp/servers/bank/{verb}")).status_code == 200

    assert [one.enabled for one in others.asked if isinstance(one, EnableServer)] == [True, False]


async def test_an_unsaved_server_is_tried_with_its_secrets(gateway: Running, others: Others):
    await others.answer(TryServer)

    report = await gateway.client.post("/v1/mcp/servers/test", json=BANK)
    of_saved = await gateway.client.post("/v1/mcp/servers/test?name=bank", json=BANK)
    wrong = await gateway.client.post("/v1/mcp/servers/test", json={**BANK, "command": "npx"})

    asked = [one for one in others.asked if isinstance(one, TryServer)]
    assert [(one.tenant, one.name) for one in asked] == [("default", None), ("default", "bank")]
    assert asked[0].config.headers["Authorization"].get_secret_value() == "Bearer canary-1"
    assert (report.status_code, report.json()["server"], of_saved.status_code) == (200, "bank", 200)
    assert (wrong.status_code, "canary" in wrong.text) == (422, False)


async def test_an_approval_names_hashes_and_may_come_too_late(gateway: Running, others: Others):
    await others.answer(ApproveDefinitions, Conflict("1 of 1 definitions to approve wait no more"))

    late = await gateway.client.post("/v1/mcp/servers/bank/approve", json={"sha256": [HASH]})
    wrong = [
        await gateway.client.post("/v1/mcp/servers/bank/approve", json=body)
        for body in ({}, {"sha256": []}, {"sha256": ["all"]}, {"sha256": [HASH], "tool": "pay"})
    ]

    assert [one.sha256 for one in others.asked if isinstance(one, ApproveDefinitions)] == [(HASH,)]
    assert (late.status_code, late.json()["code"]) == (409, "conflict")
    assert [answer.status_code for answer in wrong] == [422] * 4


async def test_a_browser_finishes_a_login_for_the_tenant_of_its_state(platform: Platform, others: Others):
    await others.answer_everything()
    store = await platform.store("gateway")
    await create_key(store, "acme", "desktop", scopes=("read",))
    await store.close()
    gateway = await start_gateway(platform)

    done = await gateway.client.get("/v1/mcp/oauth/callback?state=acme.s1&code=c1&iss=https://login.example")
    wrong = await gateway.client.get("/v1/mcp/oauth/callback?state=*.s1&code=c1")

    [asked] = [one for one in others.asked if isinstance(one, FinishAuthorization)]
    assert (asked.tenant, asked.state, asked.code, asked.iss) == ("acme", "acme.s1", "c1", "https://login.example")
    assert (done.status_code, wrong.status_code) == (200, 400)
    assert "tenant acme" in done.text.lower()
    assert done.headers["cache-control"] == "no-store"


async def test_a_login_comes_back_to_the_settings_address_not_the_hosts(gateway: Running, others: Others):
    await others.answer(AuthorizeServer)

    begun = await gateway.client.post("/v1/mcp/servers/bank/authorize", headers={"X-Forwarded-Host": "evil.example"})

    [asked] = [one for one in others.asked if isinstance(one, AuthorizeServer)]
    assert begun.json() == {"url": "https://login.example/authorize"}
    assert asked.redirect_uri.startswith("http://127.0.0.1:")
    assert asked.redirect_uri.endswith("/v1/mcp/oauth/callback")
