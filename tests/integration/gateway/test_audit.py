"""Who changed what: every operation that changes configuration writes itself down before it is made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from wayline.contracts.agents import DeleteAgent, GetAgent, PutAgent
from wayline.contracts.budgets import ListBudgets, PutBudget
from wayline.contracts.errors import NotFound, Unavailable
from wayline.contracts.forgetting import Erased, EraseFromGateway, Forget
from wayline.contracts.tenants import DisableTenant, GetTenant, Tenant
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.handlers.shared.auditing import READS, kind_of
from wayline.testkit import Platform

from .conftest import Running
from .others import AGENT, Others

NO_CONFIGURATION = (
    *("/v1/jobs", "/v1/sessions", "/v1/dead-letters/redrive", "/openai/v1", "/v1/search", "/v1/tools/search"),
    # What one user is logged in to.
    *("/v1/mcp/oauth", "/v1/mcp/logins"),
    # Ledger and costs have each call, and traces the spans that are received.
    *("/v1/tools/{name}/call", "/otlp/v1/traces"),
    *("/v1/memories/recall", "/v1/insights/recall", "/v1/schedules/{name}/run", "/v1/mcp/servers/test"),
    *("/v1/mcp/servers/{name}/test", "/v1/mcp/servers/{name}/impact", "/v1/mcp/servers/{name}/prompts/{prompt}"),
    "/v1/agents/{name}/check",
)
"""Addresses below which nothing that is saved for long is changed."""


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def operations(paths: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, methods in paths.items():
        yield from ((method.upper(), path) for method in methods if method.upper() not in READS)


async def entries(gateway: Running, query: str = "", **headers: Any) -> list[dict[str, Any]]:
    return (await gateway.client.get(f"/v1/audit{query}", **headers)).json()["entries"]


async def test_every_operation_that_changes_something_is_audited(gateway: Running):
    paths = (await gateway.client.get("/openapi.json")).json()["paths"]

    unknown = [
        (method, path)
        for method, path in operations(paths)
        if kind_of(path) is None and not path.startswith(NO_CONFIGURATION)
    ]

    assert unknown == []
    # What a reader may ask for changes nothing, and would fill the log: a form asks for it while one types.
    reads = [path for path, asked in paths.items() if asked.get("post", {}).get("x-wayline-scopes") == ["read"]]
    assert "/v1/agents/{name}/check" in reads and [path for path in reads if kind_of(path)] == []
    assert (
        kind_of("/v1/jobs/{job_id}/approvals/{approval_id}") == "approval"
        and kind_of("/v1/jobs/{job_id}/cancel") is None
    )


async def test_an_entry_names_key_tags_and_outcome_of_a_change(gateway: Running, others: Others):
    await others.answer(GetAgent)
    await others.answer(PutAgent, AGENT.model_copy(update={"version": 3}))
    await others.answer(DeleteAgent, NotFound("agent", "critic"))
    await others.answer(ListBudgets)
    await others.answer(PutBudget, Unavailable("the router"))
    read = await gateway.client.get("/v1/agents/critic")

    saved = await gateway.client.put("/v1/agents/critic", json={"instructions": "Be kind."})
    await gateway.client.put("/v1/agents/critic", json={"instructions": 7})
    await gateway.client.put("/v1/agents/critic", json={"instructions": "x"}, headers={"If-Match": '"old"'})
    await gateway.client.delete("/v1/agents/critic")
    await gateway.client.put("/v1/budgets/month", json={"limit_usd": "5"})
    found = await entries(gateway)

    told = [(one["operation"], one["name"], one["outcome"], one["code"]) for one in reversed(found)]
    assert told == [
        ("put_agent", "critic", "made", None),
        ("put_agent", "critic", "refused", "invalid_request"),
        ("put_agent", "critic", "refused", "precondition_failed"),
        ("delete_agent", "critic", "refused", "not_found"),
        ("put_budget", "month", "failed", "retry"),
    ]
    first = found[-1]
    assert (first["before"], first["after"]) == (read.headers["etag"], saved.headers["etag"])
    assert (first["by"], first["kind"], len(first["trace_id"])) == ("local", "agent", 32)
    page = (await gateway.client.get("/v1/audit?kind=agent&limit=3")).json()
    rest = await entries(gateway, f"?kind=agent&cursor={page['next_cursor']}")
    assert [one["id"] for one in page["entries"] + rest] == [one["id"] for one in found[1:]]
    assert await entries(gateway, "?name=month&since=2999-01-01") == []


async def test_erasures_and_dismissals_are_written_down_without_the_user(gateway: Running, others: Others):
    await others.answer(Forget)

    begun = await gateway.client.post("/v1/forget", json={"user_id": "ann"})
    await gateway.client.delete("/v1/jobs/j1")
    await gateway.client.post("/v1/dead-letters/7/dismiss", json={"reason": "known"})
    await gateway.client.post("/v1/jobs/j1/cancel", json={})
    found = await entries(gateway)

    assert [(one["kind"], one["name"], one["outcome"]) for one in reversed(found)] == [
        ("erasure", begun.json()["forget_id"], "made"),
        ("erasure", "j1", "made"),
        ("dead letter", "7", "refused"),
    ]
    assert "ann" not in str(found)


async def test_what_an_operator_does_stands_in_the_tenants_log(gateway: Running, others: Others, platform: Platform):
    acme = Tenant(tenant="acme", created_at=datetime(2026, 5, 1, tzinfo=UTC))
    for kind in (GetTenant, DisableTenant):
        await others.answer(kind, acme)
    store = await platform.store("gateway")
    operator = bearer(await create_key(store, "default", "root", scopes=("read", "admin", "operator")))
    anns = bearer(await create_key(store, "acme", "ann's", scopes=("read", "admin"), user_id="ann"))
    reader = bearer(await create_key(store, "acme", "reader", scopes=("read",)))

    created = await gateway.client.post("/v1/keys", json={"name": "phone", "scopes": ["read"]}, headers=anns)
    await gateway.client.post("/v1/keys", json={"name": "phone", "scopes": ["read"]}, headers=reader)
    await gateway.client.post("/v1/tenants/acme/disable", json={"reason": "unpaid"}, headers=operator)
    body = {"name": "spare", "scopes": ["read"], "tenant": "acme"}
    spare = (await gateway.client.post("/v1/keys", json=body, headers=operator)).json()["id"]
    await gateway.client.patch(f"/v1/keys/{spare}", json={"name": "other"}, headers=operator)
    await gateway.client.delete(f"/v1/keys/{spare}", headers=operator)
    found = await entries(gateway, headers=anns)
    own = await entries(gateway, headers=operator)
    await platform.bus.ask(EraseFromGateway(tenant="acme", user_id="ann"), Erased)
    after = await entries(gateway, headers=anns)

    told = [(one["kind"], one["name"], one["by"], one["user_id"], one["is_operator"]) for one in found]
    assert own == []
    assert [one["operation"] for one in found[:3]] == ["revoke_key", "change_key", "create_key"]
    assert told == [
        *[("API key", spare, "root", None, True)] * 3,
        ("tenant", "acme", "root", None, True),
        ("API key", created.json()["id"], "ann's", "ann", False),
    ]
    assert created.json()["key"] not in str(found)
    assert await entries(gateway, headers=operator) == []
    assert [(one["by"], one["user_id"]) for one in after] == [*[("root", None)] * 4, ("a forgotten user", None)]
