# pyright: reportArgumentType=false
"""Prompts over HTTP: saved by administrators of their own tenant."""

from __future__ import annotations

from wayline.gateway.adapters import prompts
from wayline.gateway.adapters.keys import create_key
from wayline.testkit import Platform

from .conftest import Running, start_gateway
from .others import Others

REVIEW = {"description": "Check.", "arguments": [{"name": "text"}], "messages": [{"text": "Check this: {{text}}"}]}


async def test_a_prompt_is_saved_changed_listed_and_deleted(gateway: Running):
    saved = await gateway.client.put("/v1/prompts/review", json=REVIEW)
    changed = await gateway.client.put("/v1/prompts/review", json={**REVIEW, "title": "Review"})
    listed = (await gateway.client.get("/v1/prompts")).json()["prompts"]
    one = (await gateway.client.get("/v1/prompts/review")).json()
    deleted = [(await gateway.client.delete("/v1/prompts/review")).status_code for _ in range(2)]
    gone = await gateway.client.get("/v1/prompts/review")

    assert [saved.status_code, changed.status_code, gone.status_code] == [200, 200, 404]
    assert listed == [one]
    assert (one["name"], one["prompt"]["title"], one["prompt"]["messages"][0]["text"]) == (
        "review",
        "Review",
        "Check this: {{text}}",
    )
    assert deleted == [200, 404]


async def test_only_administrators_of_a_tenant_change_its_prompts(platform: Platform, others: Others):
    await others.answer_everything()
    store = await platform.store("gateway")
    keys = {
        who: await create_key(store, tenant, who, scopes=scopes)
        for who, tenant, scopes in (
            ("admin", "acme", ("read", "admin")),
            ("reader", "acme", ("read", "write")),
            ("stranger", "globex", ("read", "admin")),
        )
    }
    gateway = await start_gateway(platform)

    async def ask(method: str, who: str, path: str = "/review", **more):
        headers = {"Authorization": f"Bearer {keys[who]}"}
        return await gateway.client.request(method, f"/v1/prompts{path}", headers=headers, **more)

    refused = [await ask("PUT", "reader", json=REVIEW), await ask("DELETE", "reader")]
    saved = await ask("PUT", "admin", json=REVIEW)
    seen = [await ask("GET", who) for who in ("reader", "stranger")]
    taken = await ask("DELETE", "stranger")

    assert [one.status_code for one in (*refused, saved, *seen)] == [403, 403, 200, 200, 404]
    assert taken.status_code == 404
    assert (await ask("GET", "stranger", "")).json()["prompts"] == []


async def test_prompts_of_one_tenant_are_limited(gateway: Running, monkeypatch):
    monkeypatch.setattr(prompts, "PROMPTS_MAX", 1)
    answers = [await gateway.client.put(f"/v1/prompts/{name}", json=REVIEW) for name in ("a", "b", "a")]

    assert [answer.status_code for answer in answers] == [200, 409, 200]
    assert "delete one first" in answers[1].text


async def test_a_prompt_that_cannot_be_completed_says_why(gateway: Running):
    answer = await gateway.client.put("/v1/prompts/review", json={"messages": [{"text": "{{text}}"}]})

    assert answer.status_code == 422
    assert "`arguments` lacks what the messages use: text" in answer.text
