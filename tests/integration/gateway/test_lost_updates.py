"""Nobody overwrites what they have not read: entity tags and conditions on every route that changes configuration."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.gateway.settings import Settings
from wayline.notifier.settings import Settings as NotifierSettings
from wayline.testkit import Platform
from wayline.tool_registry.settings import Settings as RegistrySettings

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

AGENT, OTHER_AGENT = {"instructions": "Be kind."}, {"instructions": "Be brief."}
CARD = {"provider": "chat", "model": "acme/own:1", "tier": "standard", "context_window": 9_000, "tools": "native"}
JOB = {"agent": "assistant", "input": "news"}
BODIES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "/v1/agents/{name}": ("/v1/agents/critic", AGENT, OTHER_AGENT),
    "/v1/agents/{name}/labels/{label}": (
        "/v1/agents/assistant/labels/candidate",
        {"version": 1},
        {"version": 1, "share": 0.5},
    ),
    "/v1/budgets/{name}": ("/v1/budgets/month", {"limit_usd": "5"}, {"limit_usd": "6"}),
    "/v1/mcp/servers/{name}": (
        "/v1/mcp/servers/bank?enabled=false",
        {"url": "https://bank.example/mcp"},
        {"url": "https://bank.example/mcp", "effects": {"pay": "once"}},
    ),
    "/v1/webhooks/{name}": (
        "/v1/webhooks/crm",
        {"url": "https://crm.example/hook"},
        {"url": "https://crm.example/hook", "content": True},
    ),
    "/v1/mcp/secrets/{name}": ("/v1/mcp/secrets/BANK_TOKEN", {"value": "s3cr3t"}, {"value": "s3cr3t2"}),
    "/v1/models/{provider}/{model}": (
        "/v1/models/chat/acme/own:1",
        {**CARD, "temperature": True},
        {**CARD, "temperature": False},
    ),
    "/v1/prompts/{name}": (
        "/v1/prompts/review",
        {"messages": [{"text": "Review this."}]},
        {"messages": [{"text": "Review that."}]},
    ),
    "/v1/schedules/{name}": (
        "/v1/schedules/morning",
        {"cron": "0 7 * * *", "job": JOB},
        {"cron": "0 8 * * *", "job": JOB},
    ),
    "/v1/tenants/{tenant}/limits": (
        "/v1/tenants/default/limits",
        {"tenant": {"requests": {"per_minute": 600_000}}},
        {"tenant": {"requests": {"per_minute": 900_000}}},
    ),
    "/v1/subjects/{kind}/{subject_id}": ("/v1/subjects/client/acme", {"name": "Acme"}, {"name": "Acme Ltd."}),
}
"""What each route takes that changes configuration by name: an address, a body and another one."""
NO_CONFIGURATION = {
    *(
        "/v1/jobs/{job_id}",
        "/openai/v1/responses/{response_id}",
        "/v1/mcp/logins",
        "/v1/sessions/{session_id}",
    ),
    *("/v1/pauses/{kind}/{name}", "/v1/running-limits/{whose}/{name}"),
    *("/v1/mcp/servers/{name}/authorization", "/v1/mcp/servers/{name}/logins"),
}
"""What is deleted and never changed: there is no update that could be lost."""
DESCRIBED = {"/v1/documents/{document_id}", "/v1/keys/{key_id}"}
"""What is made by no name in a path, and described anew; `test_documents.py` and `test_rate_limits.py` have their
conditions."""
VERSIONED = {"/v1/insights/{fact_id}", "/v1/memories/{fact_id}"}
"""Where a change is a new version of the one that it names; `test_memories.py` has their conditions."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(module_platform: Platform) -> AsyncIterator[httpx2.AsyncClient]:
    keys = {"keys": f"k1:{b64encode(bytes(32)).decode()}"}
    registry, notifier = RegistrySettings.model_validate(keys), NotifierSettings.model_validate(keys)
    await module_platform.start(
        *("router", "tool_registry", "retrieval", "notifier", "gateway"),
        gateway=Settings(http_port=0),
        tool_registry=registry,
        notifier=notifier,
    )
    yield await module_platform.http(timeout_s=30)


async def described(http: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    return (await http.get("/openapi.json")).json()["paths"]


async def test_every_change_of_configuration_takes_conditions_by_the_description(http: httpx2.AsyncClient):
    paths = await described(http)
    changing = {
        path: {method: one for method, one in operations.items() if method in {"put", "patch", "delete"}}
        for path, operations in paths.items()
    }

    assert {path for path, found in changing.items() if found} == {
        *BODIES,
        *NO_CONFIGURATION,
        *VERSIONED,
        *DESCRIBED,
        "/v1/settings",
    }
    for path in (*BODIES, *DESCRIBED, "/v1/settings"):
        assert "ETag" in paths[path]["get"]["responses"]["200"]["headers"], path
        for method, operation in changing[path].items():
            names = {parameter["name"].lower() for parameter in operation["parameters"]}
            assert names >= {"if-match", "if-none-match"} and "412" in operation["responses"], (method, path)


@pytest.mark.parametrize("path", BODIES)
async def test_a_change_of_what_was_not_read_is_refused(path: str, http: httpx2.AsyncClient):
    address, body, other = BODIES[path]
    new = {"If-None-Match": "*"}

    created = await http.put(address, json=body, headers=new)
    again = await http.put(address, json=body, headers=new)
    read = await http.get(address.partition("?")[0])
    tag = {"If-Match": read.headers["etag"]}
    changed = await http.put(address, json=other, headers=tag)
    late = await http.put(address, json=body, headers=tag)
    undeleted = await http.delete(address.partition("?")[0], headers=tag)
    now = {"If-Match": changed.headers["etag"]}
    deleted = await http.delete(address.partition("?")[0], headers=now)
    gone = await http.put(address, json=body, headers=now)

    assert [one.status_code for one in (created, again, read, changed)] == [200, 412, 200, 200], created.text
    assert [one.status_code for one in (late, undeleted, deleted, gone)] == [412, 412, 200, 412]
    assert created.headers["etag"] == read.headers["etag"] != changed.headers["etag"]
    assert late.json()["code"] == "precondition_failed" and "read it again" in late.json()["detail"]
    # Both versions, to tell them apart without another request.
    assert {tag["If-Match"], now["If-Match"]} <= set(re.findall(r'"[0-9a-f]{32}"', late.json()["detail"]))
    assert late.headers["etag"] == now["If-Match"]


@pytest.mark.parametrize("path", BODIES)
async def test_of_changes_at_once_of_one_reading_one_is_made(path: str, http: httpx2.AsyncClient):
    address, body, other = BODIES[path]
    tag = (await http.put(address, json=body)).headers["etag"]

    answers = await asyncio.gather(*(http.put(address, json=other, headers={"If-Match": tag}) for _ in range(4)))

    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]
    assert (await http.delete(address.partition("?")[0])).status_code == 200


async def test_settings_change_only_as_they_were_read(http: httpx2.AsyncClient):
    tag = (await http.get("/v1/settings")).headers["etag"]

    changed = await http.patch("/v1/settings", json={"max_steps": 7}, headers={"If-Match": tag})
    late = await http.patch("/v1/settings", json={"max_steps": 8}, headers={"If-Match": tag})

    assert (changed.status_code, late.status_code) == (200, 412)
    assert (await http.get("/v1/settings")).headers["etag"] == changed.headers["etag"] != tag


async def test_the_versions_of_an_agent_tell_who_saved_each(http: httpx2.AsyncClient):
    for instructions in ("Be kind.", "Be brief.", "Be exact."):
        assert (await http.put("/v1/agents/reviewer", json={"instructions": instructions})).is_success
    first = (await http.get("/v1/agents/reviewer/versions", params={"limit": 2})).json()
    params = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await http.get("/v1/agents/reviewer/versions", params=params)).json()
    one = (await http.get("/v1/agents/reviewer/versions/2")).json()
    missing = await http.get("/v1/agents/reviewer/versions/4")

    shown = [(one["version"], one["saved_by"], one["changed"]) for one in first["versions"] + second["versions"]]
    assert shown == [(3, "local", ["instructions"]), (2, "local", ["instructions"]), (1, "local", [])]
    assert (second["next_cursor"], one["config"]["instructions"], missing.status_code) == (None, "Be brief.", 404)


async def test_a_label_moves_between_versions_and_a_save_tells_of_production(http: httpx2.AsyncClient):
    for instructions in ("Be kind.", "Be brief."):
        assert (await http.put("/v1/agents/editor", json={"instructions": instructions})).is_success
    labels = "/v1/agents/editor/labels"
    missing = await http.put(f"{labels}/production", json={"version": 3})
    production = await http.put(f"{labels}/production", json={"version": 1})
    shared = await http.put(f"{labels}/candidate", json={"version": 2, "share": 0.1})
    wrong = await http.put(f"{labels}/production", json={"version": 1, "share": 0.5})
    saved = (await http.put("/v1/agents/editor", json={"instructions": "Be exact."})).json()
    agent = (await http.get("/v1/agents/editor")).json()
    versions = (await http.get("/v1/agents/editor/versions")).json()["versions"]
    planned = [
        (await http.post("/v1/jobs", json={"agent": "editor", "input": "x", "options": {"dry_run": True, **options}}))
        for options in ({}, {"agent_label": "candidate"}, {"agent_label": "nobody"})
    ]
    refused = await http.post("/v1/jobs", json={"agent": "editor", "input": "x", "options": {"agent_label": "nobody"}})

    assert [one.status_code for one in (missing, production, shared, wrong)] == [404, 200, 200, 422]
    assert wrong.json()["code"] == "invalid_share"
    assert saved["version"] == 3 and "go on with version 1" in saved["warnings"][0]
    assert agent["labels"] == [
        {"version": 2, "share": 0.1, "label": "candidate"},
        {"version": 1, "share": None, "label": "production"},
    ]
    assert [(one["version"], one["labels"]) for one in versions] == [(3, []), (2, ["candidate"]), (1, ["production"])]
    assert [one.json().get("agent_version") for one in planned] == [1, 2, None]
    assert [one.json()["code"] for one in (planned[2], refused)] == ["unknown_label"] * 2
    assert (planned[2].status_code, refused.status_code) == (404, 404)


async def test_a_checked_agent_is_not_saved_but_routed_and_priced(http: httpx2.AsyncClient):
    config = {"instructions": "Answer in one sentence.", "tools": ["get_current_time", "get_curent_time"]}
    good = await http.post("/v1/agents/draft/check", json=config)
    bad = await http.post("/v1/agents/draft/check", json={**config, "model": "chat/nobody"})
    saved = await http.get("/v1/agents/draft")

    checked = good.json()
    assert (good.status_code, checked["problems"], saved.status_code) == (200, [], 404), good.text
    assert checked["instructions_tokens"] >= 5 and checked["tools"] == 1 and checked["tools_tokens"] > 20
    assert (checked["tools_loaded"], checked["tools_deferred"]) == (["get_current_time"], [])
    assert checked["tokens_by_tool"]["get_current_time"] == checked["tools_tokens"]
    assert len(checked["tokens_by_tool"]) > 1
    assert any("get_curent_time" in warning for warning in checked["warnings"])
    assert checked["route"]["estimated_cost_usd"] is not None and checked["route"]["reason"]
    [problem] = bad.json()["problems"]
    assert (bad.status_code, problem["code"], bad.json()["route"]) == (200, "unknown_model", None)


async def test_the_tools_of_a_checked_agent_follow_the_settings(http: httpx2.AsyncClient):
    async def usable(**config: Any) -> list[str]:
        found = (await http.post("/v1/agents/draft/check", json=config)).json()
        return [*found["tools_loaded"], *found["tools_deferred"]]

    before = await usable(tools=["get_current_time", "web_fetch"])
    settings = {"tools": ["get_current_time", "web_fetch"], "web_search": False}
    assert (await http.patch("/v1/settings", json=settings)).is_success
    left, own = await usable(), await usable(web_search=True)
    await http.patch("/v1/settings", json=dict.fromkeys(settings))

    assert left == ["get_current_time"]
    assert sorted(own) == sorted(before)


LISTS = {
    "/v1/agents": "agents",
    "/v1/budgets": "budgets",
    "/v1/mcp/servers": "servers",
    "/v1/models": "models",
    "/v1/prompts": "prompts",
    "/v1/schedules": "schedules",
    "/v1/tools": "tools",
    "/v1/keys": "keys",
    "/v1/tenants": "tenants",
}


NOT_PAGED = {
    "/v1/costs": "sums, bounded by their groups",
    "/v1/overview": "sums",
    "/v1/replicas": "as many as run",
    "/v1/pauses": "two hundred at most",
    "/v1/running-limits": "two hundred at most",
    "/v1/providers": "as many as are configured",
    "/v1/tools/usage": "one answer about all tools",
    "/v1/tools/figures": "one answer about a tool",
    "/v1/vector-sets": "two or three",
    "/v1/jobs/{job_id}/events": "a log, read on from an event",
    "/v1/jobs/{job_id}/export": "a whole job",
    "/v1/jobs/{job_id}/memories": "bounded by what one prompt holds",
    "/v1/jobs/{job_id}/feedback": "bounded for a job",
    "/v1/mcp/servers/{name}/impact": "one answer about a change",
    "/v1/mcp/servers/{name}/resources": "as its server lists them",
    "/v1/mcp/servers/{name}/resources/read": "one resource",
    "/v1/mcp/servers/{name}/prompts": "as its server lists them",
    "/openai/v1/models": "as OpenAI's API",
}
"""Answers with an array at their top that is no list of a tenant's things, or not ours to page."""
DELETES_WHAT_THERE_IS = {"/v1/mcp/logins"}
"""Forgets all that there is of a user, which may be nothing."""


async def test_every_answer_that_lists_things_has_pages(http: httpx2.AsyncClient):
    paths = await described(http)
    schemas = (await http.get("/openapi.json")).json()["components"]["schemas"]
    whole = set[str]()
    for path, operations in paths.items():
        # What is named by an id or a name is one thing, whatever arrays it has.
        if "get" not in operations or (path.endswith("}") and path not in NOT_PAGED) or path == "/v1/me":
            continue
        content = operations["get"]["responses"].get("200", {}).get("content", {}).get("application/json", {})
        answer = content.get("schema", {})
        fields = schemas.get(answer.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        lists = answer.get("type") == "array" or any(field.get("type") == "array" for field in fields.values())
        names = {parameter["name"] for parameter in operations["get"].get("parameters", ())}
        whole |= {path} if lists and not names >= {"limit", "cursor"} else set()

    assert whole - NOT_PAGED.keys() == {"/v1/settings"}


async def test_every_deletion_of_what_is_not_there_is_a_404(http: httpx2.AsyncClient):
    paths = await described(http)
    deleting = {path: operations["delete"] for path, operations in paths.items() if "delete" in operations}

    assert {path for path, one in deleting.items() if "404" not in one["responses"]} == DELETES_WHAT_THERE_IS
    for path in deleting.keys() - DELETES_WHAT_THERE_IS:
        address = path.replace("{key_id}", "1f2e3d4c5b6a7988").replace("{response_id}", "resp_nothere")
        gone = await http.delete(re.sub(r"\{\w+\}", "nothere", address), params={"user_id": "nobody"})
        assert gone.status_code == 404, (path, gone.text)


async def test_every_list_has_one_style_of_pages(http: httpx2.AsyncClient):
    paths = await described(http)
    schemas = (await http.get("/openapi.json")).json()["components"]["schemas"]
    paged = set[str]()
    for path, operations in paths.items():
        if "get" not in operations:
            continue
        names = {parameter["name"] for parameter in operations["get"].get("parameters", ())}
        content = operations["get"]["responses"].get("200", {}).get("content", {}).get("application/json", {})
        fields = schemas.get(content.get("schema", {}).get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        assert ("cursor" in names) == ("next_cursor" in fields), path
        assert not {"before", "page", "offset"} & names and not {"next_after", "next_before"} & fields.keys(), path
        paged |= {path} if "cursor" in names else set()

    assert paged >= LISTS.keys()


@pytest.mark.parametrize("path", ["/v1/agents", "/v1/budgets", "/v1/models", "/v1/prompts", "/v1/schedules"])
async def test_pages_of_one_make_the_whole_list(path: str, http: httpx2.AsyncClient):
    name = LISTS[path]
    _, body, _ = next(one for kept, one in BODIES.items() if kept.startswith(f"{path}/"))
    for number in range(3):
        at, named = (f"chat/own:{number}", {"model": f"own:{number}"}) if name == "models" else (f"p{number}", {})
        assert (await http.put(f"{path}/{at}", json={**body, **named})).is_success
    whole = (await http.get(path, params={"limit": 200})).json()[name]

    found, cursor = [], None
    while True:
        page = (await http.get(path, params={"limit": 1, **({"cursor": cursor} if cursor else {})})).json()
        found += page[name]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert len(whole) >= 3 and found == whole
    assert (await http.get(path, params={"cursor": "%"})).status_code == 400
