"""Servers over HTTP: saved by administrators of their own tenant, shown without secrets."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from wayline.contracts.errors import Conflict, Full, NotFound, Unavailable
from wayline.contracts.mcp_servers import (
    ApproveDefinitions,
    EnableServer,
    GetServer,
    ListServers,
    PutServer,
    ServerView,
    TryServer,
)
from wayline.contracts.server_config import MASK
from wayline.contracts.server_logins import AuthorizeServer, ForgetAuthorization, ForgetUser
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform
from wayline.testkit.walks import cases

from .conftest import Running, start_gateway
from .others import ANSWERS, Others

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


@pytest.mark.parametrize(("query", "enabled"), cases([("", None), ("?enabled=false", False), ("?enabled=true", True)]))
async def test_a_server_is_saved_enabled_as_asked(gateway: Running, others: Others, query: str, enabled: bool | None):
    await others.answer(GetServer)
    await others.answer(PutServer)

    saved = await gateway.client.put(f"/v1/mcp/servers/bank{query}", json=BANK)

    assert saved.status_code == 200
    assert [one.enabled for one in others.asked if isinstance(one, PutServer)] == [enabled]


async def test_waiting_definitions_of_some_tools_are_asked_for(gateway: Running, others: Others):
    await others.answer(GetServer)

    for query in ("", "?tool=pay&tool=rate"):
        assert (await gateway.client.get(f"/v1/mcp/servers/bank{query}")).status_code == 200

    assert [one.tools for one in others.asked if isinstance(one, GetServer)] == [(), ("pay", "rate")]


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
        await gateway.client.post("/v1/mcp/servers/import?dry_run=true", json=FILE, headers=headers),
        await gateway.client.delete("/v1/mcp/servers/bank/authorization", headers=headers),
    ]

    assert [answer.status_code for answer in read] == [200] * 3
    assert [answer.status_code for answer in changes] == [403] * 11


async def test_a_wrong_server_is_refused_without_its_secrets(gateway: Running, others: Others):
    await others.answer(GetServer)
    await others.answer(PutServer, Conflict("'bank' is the name of a server of this installation"))

    both = await gateway.client.put("/v1/mcp/servers/bank", json={**BANK, "command": "npx"})
    header = await gateway.client.put("/v1/mcp/servers/bank", json={**BANK, "headers": {"Host": "canary-2"}})
    taken = await gateway.client.put("/v1/mcp/servers/bank", json=BANK)

    assert [both.status_code, header.status_code, taken.status_code] == [422, 422, 409]
    assert "either `url` or `command`" in both.text
    assert "canary" not in both.text + header.text + taken.text


async def test_enabling_and_disabling_ask_for_the_state(gateway: Running, others: Others):
    await others.answer(GetServer)
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


async def test_a_try_beyond_the_limit_is_answered_with_429(gateway: Running, others: Others):
    await others.answer(TryServer, Full("the registry"))

    refused = await gateway.client.post("/v1/mcp/servers/test", json=BANK)

    assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (429, "full", "1")


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


async def test_a_login_comes_back_to_the_settings_address_not_the_hosts(gateway: Running, others: Others):
    await others.answer(AuthorizeServer)

    begun = await gateway.client.post("/v1/mcp/servers/bank/authorize", headers={"X-Forwarded-Host": "evil.example"})

    [asked] = [one for one in others.asked if isinstance(one, AuthorizeServer)]
    assert begun.json() == {"url": "https://login.example/authorize"}
    assert asked.redirect_uri.startswith("http://127.0.0.1:")
    assert asked.start_uri == asked.redirect_uri.replace("callback", "start")
    assert asked.redirect_uri.endswith("/v1/mcp/oauth/callback")


async def test_users_log_in_with_keys_that_submit_their_jobs(platform: Platform, others: Others):
    await others.answer_everything()
    store = await platform.store("gateway")
    keys = {scope: await create_key(store, "acme", scope, scopes=("read", scope)) for scope in ("write", "tools")}
    await store.close()
    gateway = await start_gateway(platform)

    async def answers(scope: str) -> list[int]:
        headers, path = {"Authorization": f"Bearer {keys[scope]}"}, "/v1/mcp/servers/bank/logins"
        done = [
            await gateway.client.post(path, json={"user_id": "alice"}, headers=headers),
            await gateway.client.delete(f"{path}?user_id=alice", headers=headers),
            await gateway.client.delete("/v1/mcp/logins?user_id=alice", headers=headers),
            await gateway.client.get(path, headers=headers),
        ]
        return [answer.status_code for answer in done]

    assert await answers("write") == [200] * 4
    assert await answers("tools") == [403] * 3 + [200]
    [begun] = [one for one in others.asked if isinstance(one, AuthorizeServer)]
    forgotten = [one.user_id for one in others.asked if isinstance(one, ForgetAuthorization | ForgetUser)]
    assert (begun.tenant, begun.user_id, forgotten) == ("acme", "alice", ["alice", "alice"])


async def test_a_login_without_its_user_is_the_tenants_alone(gateway: Running, others: Others):
    await others.answer_everything()

    wrong = [
        await gateway.client.post("/v1/mcp/servers/bank/logins", json=body)
        for body in ({}, {"user_id": ""}, {"user_id": 1})
    ]
    wrong.append(await gateway.client.delete("/v1/mcp/servers/bank/logins"))
    wrong.append(await gateway.client.delete("/v1/mcp/logins?user_id="))

    assert [answer.status_code for answer in wrong] == [422] * 5
    assert others.asked == []


async def test_the_clients_document_is_named_over_https_only(platform: Platform, others: Others):
    await others.answer(AuthorizeServer)
    inside = await start_gateway(platform)
    await inside.client.post("/v1/mcp/servers/bank/authorize")
    outside = await start_gateway(platform, public_url="https://wayline.example")
    await outside.client.post("/v1/mcp/servers/bank/authorize")

    document = (await outside.client.get("/v1/mcp/oauth/client.json")).json()

    asked = [one for one in others.asked if isinstance(one, AuthorizeServer)]
    url = "https://wayline.example/v1/mcp/oauth/client.json"
    assert [one.client_metadata_url for one in asked] == [None, url]
    assert (document["client_id"], document["redirect_uris"]) == (url, [asked[1].redirect_uri])


async def test_a_wrong_client_is_refused_without_its_secret(gateway: Running, others: Others):
    await others.answer(GetServer)
    await others.answer(PutServer)

    oauth = {"client_id": "shop", "client_secret": "canary-3"}
    wrong = await gateway.client.put("/v1/mcp/servers/bank", json={"url": BANK["url"], "oauth": oauth})
    right = {**oauth, "issuer": "https://login.example"}
    saved = await gateway.client.put("/v1/mcp/servers/bank", json={"url": BANK["url"], "oauth": right})

    [asked] = [one for one in others.asked if isinstance(one, PutServer)]
    assert (wrong.status_code, saved.status_code) == (422, 200)
    assert "`client_secret` needs" in wrong.text
    assert asked.config.oauth.client_secret.get_secret_value() == "canary-3"
    assert "canary" not in wrong.text + saved.text


FILE = {
    "globalShortcut": "Ctrl+Space",
    "mcpServers": {
        "My Files": {"command": "npx", "env": {"TOKEN": "canary-3"}, "disabled": True, "timeout": 60},
        "remote": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer canary-4"}},
        "my_files": {"command": "uvx"},
        "bank": {"url": "https://bank.example/mcp"},
        "both": {"url": "https://h/mcp", "command": "npx", "env": {"TOKEN": "canary-5"}},
        "later": {"command": "npx", "env": {"TOKEN": "${TOKEN}"}},
        "wrong": ["canary-6"],
    },
}
PROBLEMS = {
    "My Files": "",
    "remote": "",
    "my_files": "another server of this file",
    "bank": "saved already",
    "both": "either `url` or `command`",
    "later": "put the value in its place",
    "wrong": "no object",
}


def told(answer: httpx2.Response) -> dict[str, dict[str, Any]]:
    assert answer.status_code == 200 and "canary" not in answer.text, answer.text
    servers = {one["given"]: one for one in answer.json()["servers"]}
    assert {given: PROBLEMS[given] in one["problem"] for given, one in servers.items()} == dict.fromkeys(
        FILE["mcpServers"], True
    )
    return servers


async def test_a_dry_run_of_an_import_saves_nothing(gateway: Running, others: Others):
    await others.answer(ListServers)

    servers = told(await gateway.client.post("/v1/mcp/servers/import?dry_run=true", json=FILE))
    audited = (await gateway.client.get("/v1/audit")).json()["entries"][0]

    files = servers["My Files"]
    assert (files["name"], files["disabled"], files["dropped"]) == ("my-files", True, ["timeout"])
    assert files["config"]["env"] == {"TOKEN": MASK} and not any(one["saved"] for one in servers.values())
    assert [type(one) for one in others.asked] == [ListServers]
    assert audited["detail"] == "dry run: nothing is saved"


async def test_an_import_saves_each_server_that_can_be(gateway: Running, others: Others):
    def put(asked: PutServer) -> ServerView:
        if asked.name == "remote":
            raise Unavailable("the tool-registry")
        return ANSWERS[PutServer]

    await others.answer(ListServers)
    await others.answer(GetServer, NotFound("server", "x"))
    await others.answer(PutServer, put)

    answer = await gateway.client.post("/v1/mcp/servers/import", json=FILE)
    audited = (await gateway.client.get("/v1/audit")).json()["entries"][0]

    servers = {one["given"]: one["saved"] for one in answer.json()["servers"]}
    assert "canary" not in answer.text and answer.json()["saved"] == 1
    assert servers == {given: {"My Files": True, "remote": None}.get(given, False) for given in FILE["mcpServers"]}
    asked = [one for one in others.asked if isinstance(one, PutServer)]
    assert [(one.name, one.enabled) for one in asked] == [("my-files", False), ("remote", None)]
    assert asked[0].config.env["TOKEN"].get_secret_value() == "canary-3"
    assert (audited["name"], audited["detail"]) == ("my-files, remote", "saved 1 of 7")


async def test_an_import_without_servers_or_with_too_many_is_refused(gateway: Running, others: Others):
    await others.answer(ListServers)
    many = {str(number): {"command": "npx", "env": {"T": "canary-7"}} for number in range(101)}

    answers = [
        await gateway.client.post("/v1/mcp/servers/import", json=body)
        for body in ({}, {"mcpServers": ["canary-8"]}, {"servers": many})
    ]

    assert [one.status_code for one in answers] == [422] * 3
    assert not any("canary" in one.text for one in answers)
