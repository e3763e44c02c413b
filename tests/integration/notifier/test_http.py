"""Webhooks over HTTP: created with a secret that is shown once, kept apart by tenant, for keys with the scope."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.testkit import until

from .conftest import Hooks

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(hooks: Hooks) -> AsyncIterator[httpx2.AsyncClient]:
    await hooks.platform.start("router", "gateway")
    yield await hooks.platform.http()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def keys(http: httpx2.AsyncClient) -> dict[str, dict[str, str]]:
    """Headers with keys: of two tenants, of one without the scope, of one that acts for a user."""
    operator = (await http.post("/v1/keys", json={"name": "op", "scopes": ["admin", "operator"]})).json()["key"]
    first = {"Authorization": f"Bearer {operator}"}
    made = {}
    for name, key in {
        "acme": {"tenant": "acme", "scopes": ["webhooks"]},
        "other": {"tenant": "other", "scopes": ["webhooks"]},
        "reader": {"tenant": "acme", "scopes": ["read", "write"]},
        "ann": {"tenant": "acme", "scopes": ["webhooks", "admin"], "user_id": "ann"},
    }.items():
        await http.post("/v1/tenants", json={"tenant": key["tenant"]}, headers=first)
        answer = await http.post("/v1/keys", json={"name": name, **key}, headers=first)
        assert answer.status_code == 201, answer.text
        made[name] = {"Authorization": f"Bearer {answer.json()['key']}"}
    return made


async def test_a_webhook_is_created_tested_and_deleted(hooks: Hooks, http: httpx2.AsyncClient, keys: Any):
    receiver, mine = hooks.receiver(), keys["acme"]
    body = {"url": receiver.url, "events": ["job.completed"]}

    created = await http.post("/v1/webhooks/crm", json=body, headers=mine)
    again = await http.post("/v1/webhooks/crm", json=body, headers=mine)
    shown = await http.get("/v1/webhooks/crm", headers=mine)
    listed = await http.get("/v1/webhooks", headers=mine)
    tested = await http.post("/v1/webhooks/crm/test", headers=mine)
    deliveries = await http.get("/v1/webhooks/crm/deliveries", headers=mine)
    one = deliveries.json()["deliveries"][0]
    whole = await http.get(f"/v1/webhooks/crm/deliveries/{one['delivery_id']}", headers=mine)
    sent = await http.post(f"/v1/webhooks/crm/deliveries/{one['delivery_id']}/redeliver", headers=mine)

    assert created.status_code == 201 and created.json()["secret"].startswith("whsec_")
    assert (again.status_code, again.json()["code"]) == (409, "webhook_exists")
    assert "secret" not in shown.json() and created.json()["secret"] not in listed.text
    assert tested.json()["answers"][0]["status"] == 200 and tested.json()["type"] == "webhook.test"
    assert whole.json()["request"]["body"] == receiver.requests[0].body.decode()
    assert sent.json() == {"deliveries": 1, "more": False}
    await until(lambda: receiver.ids == {one["delivery_id"]: 2}, why="it was sent again under its id")
    assert (await http.delete("/v1/webhooks/crm", headers=mine)).json() == {"deleted": True}
    assert (await http.delete("/v1/webhooks/crm", headers=mine)).status_code == 404


async def test_deliveries_are_paged_newest_first(hooks: Hooks, http: httpx2.AsyncClient, keys: Any):
    receiver, mine = hooks.receiver(), keys["acme"]
    await http.post("/v1/webhooks/paged", json={"url": receiver.url}, headers=mine)
    for number in range(5):
        await hooks.complete("acme", f"paged-{number}")
    await receiver.until_sent(5)
    every = (await http.get("/v1/webhooks/paged/deliveries", headers=mine)).json()["deliveries"]

    pages, cursor = [], None
    while cursor is not None or not pages:
        asked = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        page = (await http.get("/v1/webhooks/paged/deliveries", params=asked, headers=mine)).json()
        pages.append([one["job_id"] for one in page["deliveries"]])
        cursor = page["next_cursor"]

    assert [len(page) for page in pages] == [2, 2, 1]
    assert [job for page in pages for job in page] == [one["job_id"] for one in every]
    wrong = await http.get("/v1/webhooks/paged/deliveries", params={"cursor": "YWJj"}, headers=mine)
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_cursor")


async def test_another_tenant_and_another_scope_see_nothing(hooks: Hooks, http: httpx2.AsyncClient, keys: Any):
    receiver = hooks.receiver()
    await http.post("/v1/webhooks/mine", json={"url": receiver.url}, headers=keys["acme"])
    tested = await http.post("/v1/webhooks/mine/test", headers=keys["acme"])
    path = f"/v1/webhooks/mine/deliveries/{tested.json()['delivery_id']}"

    for method, at in (
        *(("GET", "/v1/webhooks/mine"), ("DELETE", "/v1/webhooks/mine"), ("POST", "/v1/webhooks/mine/rotate")),
        *(("POST", "/v1/webhooks/mine/test"), ("GET", "/v1/webhooks/mine/deliveries"), ("GET", path)),
        *(("POST", f"{path}/redeliver"), ("POST", "/v1/webhooks/mine/redeliver")),
    ):
        body = {"json": {}} if at.endswith("mine/redeliver") else {}
        assert (await http.request(method, at, headers=keys["other"], **body)).status_code == 404, at
        assert (await http.request(method, at, headers=keys["reader"], **body)).status_code == 403, at
        assert (await http.request(method, at, headers=keys["ann"], **body)).status_code == 403, at
    assert (await http.get("/v1/webhooks", headers=keys["other"])).json()["webhooks"] == []
    assert len(receiver.requests) == 1


async def test_wrong_addresses_names_and_events_are_refused(http: httpx2.AsyncClient, keys: Any):
    for name, body in (
        *(("a", {"url": "ftp://a.example"}), ("a", {"url": "https://user:pw@a.example"}), ("a", {"url": "https://"})),
        *(("a", {"url": "https://a.example", "events": ["job.began"]}), ("a", {"url": "https://a.example", "more": 1})),
        ("jobs", {"url": "https://a.example"}),
    ):
        answer = await http.put(f"/v1/webhooks/{name}", json=body, headers=keys["acme"])
        assert answer.status_code == 422, (name, body, answer.text)
