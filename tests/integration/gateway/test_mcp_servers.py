"""Servers over HTTP: saved by administrators of their own tenant, shown without secrets."""

from __future__ import annotations

from wayline.contracts.errors import Conflict
from wayline.contracts.mcp_servers import MASK, EnableServer, GetServer, PutServer
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running, start_gateway
from .others import Others

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

    read = [await gateway.client.get(f"/v1/mcp/servers{path}", headers=headers) for path in ("", "/bank")]
    changes = [
        await gateway.client.put("/v1/mcp/servers/bank", json=BANK, headers=headers),
        await gateway.client.delete("/v1/mcp/servers/bank", headers=headers),
        await gateway.client.post("/v1/mcp/servers/bank/enable", headers=headers),
        await gateway.client.post("/v1/mcp/servers/bank/disable", headers=headers),
    ]

    assert [answer.status_code for answer in read] == [200, 200]
    assert [answer.status_code for answer in changes] == [403] * 4


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
