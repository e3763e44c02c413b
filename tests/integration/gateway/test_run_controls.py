"""Pauses and limits of running jobs over HTTP: who may set them, and what a refused job is answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from wayline.contracts.run_controls import AskPermit, NoteParked, ParkNoted, Permit
from wayline.gateway.adapters.keys import create_key
from wayline.gateway.settings import Settings
from wayline.testkit import Platform

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

JOB = {"agent": "assistant", "input": "hello", "user_id": "ann"}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(module_platform: Platform) -> AsyncIterator[httpx2.AsyncClient]:
    await module_platform.start("router", "gateway", gateway=Settings(http_port=0))
    http = await module_platform.http(timeout_s=30)
    store = await module_platform.store("gateway")
    http.headers.update(bearer(await create_key(store, "default", "ops")))
    yield http
    await store.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(http: httpx2.AsyncClient) -> dict[str, str]:
    made = await http.post("/v1/keys", json={"name": "adm", "scopes": ["read", "write", "admin"]})
    return bearer(made.json()["key"])


async def test_a_pause_says_who_since_when_and_why(http: httpx2.AsyncClient):
    asked = {"kind": "agent", "name": "assistant", "reason": "a bad tool"}
    made = await http.post("/v1/pauses", json=asked)
    again = await http.post("/v1/pauses", json={**asked, "reason": "a worse one", "now": True})
    listed = (await http.get("/v1/pauses")).json()["pauses"]
    ended = await http.delete("/v1/pauses/agent/assistant")
    gone = await http.delete("/v1/pauses/agent/assistant")

    assert (made.status_code, made.json()["by"], made.json()["reason"]) == (201, "ops", "a bad tool")
    assert listed == [again.json()] and listed[0]["since"] == made.json()["since"] and listed[0]["now"]
    assert (ended.status_code, gone.status_code) == (200, 404)
    changes = (await http.get("/v1/audit")).json()["entries"]
    assert {"pause", "resume"} <= {change["operation"] for change in changes}


async def test_lanes_and_tenants_are_paused_by_operators(http: httpx2.AsyncClient, admin: dict[str, str]):
    for kind, name in (("lane", "batch"), ("tenant", "default")):
        refused = await http.post("/v1/pauses", json={"kind": kind, "name": name}, headers=admin)
        made = await http.post("/v1/pauses", json={"kind": kind, "name": name})
        kept = await http.delete(f"/v1/pauses/{kind}/{name}", headers=admin)
        ended = await http.delete(f"/v1/pauses/{kind}/{name}")
        assert [one.status_code for one in (refused, made, kept, ended)] == [403, 201, 403, 200]
    own = await http.post("/v1/pauses", json={"kind": "agent", "name": "assistant"}, headers=admin)
    assert own.status_code == 201
    assert (await http.delete("/v1/pauses/agent/assistant", headers=admin)).status_code == 200


@pytest.mark.parametrize(("kind", "name"), [("agent", "nobody"), ("lane", "slow"), ("tenant", "nobody")])
async def test_what_there_is_not_cannot_be_paused(http: httpx2.AsyncClient, kind: str, name: str):
    assert (await http.post("/v1/pauses", json={"kind": kind, "name": name})).status_code == 404


async def test_a_job_beyond_a_limit_is_answered_429(http: httpx2.AsyncClient, module_platform: Platform):
    limit: dict[str, Any] = {"whose": "user", "name": "*", "max_running": 1, "when_full": "refuse"}
    assert (await http.post("/v1/running-limits", json=limit)).status_code == 201
    # As the executor of a job asks before it begins it.
    about: dict[str, Any] = {"tenant": "default", "job_id": "j1", "lane": "interactive"}
    asked = AskPermit(**about, at=1, agent="assistant", user_id="ann")
    assert (await module_platform.bus.ask(asked, Permit)).granted

    refused = await http.post("/v1/jobs", json=JOB)
    chat = {"model": "assistant", "messages": [{"role": "user", "content": "hello"}], "user": "ann"}
    of_openai = await http.post("/openai/v1/chat/completions", json=chat)
    other = await http.post("/v1/jobs", json={**JOB, "user_id": "bob"})
    await module_platform.bus.ask(NoteParked(**about, at=2, why="approval"), ParkNoted)
    accepted = await http.post("/v1/jobs", json=JOB)
    deleted = await http.delete("/v1/running-limits/user/*")

    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_running")
    assert int(refused.headers["retry-after"]) > 0
    assert (of_openai.status_code, of_openai.json()["error"]["code"]) == (429, "too_many_running")
    assert int(of_openai.headers["retry-after"]) > 0
    assert (other.status_code, accepted.status_code, deleted.status_code) == (202, 202, 200)
    assert (await http.get("/v1/running-limits")).json()["limits"] == []
