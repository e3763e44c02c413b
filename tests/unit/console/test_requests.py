"""Requests to the console whose API is told in the test: what it sends, what it refuses, and what stays in a form."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import pytest
from fastapi import FastAPI

from wayline.client import ApiError
from wayline.client.client import Client, Tagged
from wayline.console.access.sealed_cookie import Session
from wayline.console.access.visitor import SignInNeeded, Visitor, _visitor
from wayline.console.app import create_app
from wayline.console.pages.refusal import OVERTAKEN, reason_of_save
from wayline.console.render.schema_form import ApiSchemas
from wayline.console.settings import Settings

SCOPES = ["read", "write", "approve", "admin", "operator"]
ME = {"tenant": "acme", "name": "ann", "scopes": SCOPES, "open": False, "version": "1", "user_id": None, "key_id": "k"}
OWN = {"sec-fetch-site": "same-origin"}
BUDGET: dict[str, Any] = {
    **{"name": "month", "limit_usd": "10", "window": "month", "timezone": "UTC", "agent": None, "user_id": None},
    **{"hard": True, "alerts": ["0.5"], "spent_usd": "6", "reserved_usd": "3", "unsettled_usd": "2", "left_usd": "0"},
    **{"unsettled_jobs": 1, "waiting_jobs": 0, "starts_at": None, "ends_at": None, "raised": []},
}


class Api:
    """A client that was told what to answer, and keeps what it was sent."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.sent: list[tuple[str, str, Any, Any]] = []
        self.refusal: ApiError | None = None
        self.address = SimpleNamespace(url="http://127.0.0.1:8080")

    async def get(self, path: str, **params: Any) -> Any:
        self.sent.append(("GET", path, params, None))
        found = self.answers[path]
        return found(**params) if callable(found) else found

    async def whole(self, path: str, name: str, **params: Any) -> Any:
        return await self.get(path, **params)

    async def tagged(self, path: str, **params: Any) -> Tagged:
        return Tagged(await self.get(path, **params), '"7"')

    async def approvals(self, **params: Any) -> Any:
        return await self.get("/v1/approvals", **params)

    async def pages(self, path: str, **params: Any) -> AsyncGenerator[Any]:
        cursor: str | None = None
        while True:
            page = await self.get(path, cursor=cursor, **params)
            yield page
            cursor = page["next_cursor"]
            if cursor is None:
                return

    async def _change(self, method: str, path: str, body: Any, headers: Any) -> Any:
        self.sent.append((method, path, body, headers))
        if self.refusal:
            raise self.refusal
        return {"job_id": "j1"}

    async def put(self, path: str, body: Any, *, headers: Any = None) -> Any:
        return await self._change("PUT", path, body, headers)

    async def post(self, path: str, body: Any = None, *, headers: Any = None) -> Any:
        return await self._change("POST", path, body, headers)

    async def delete(self, path: str, *, headers: Any = None) -> Any:
        return await self._change("DELETE", path, None, headers)

    async def job(self, job_id: str) -> Any:
        return await self.get(f"/v1/jobs/{job_id}")

    async def log(self, job_id: str) -> list[Any]:
        return []

    async def submit(self, body: Any, *, key: str | None = None) -> Any:
        await self._change("POST", "/v1/jobs", body, key)
        return {"job_id": "j1"}

    async def decide(self, job_id: str, approval_id: str, decision: Any) -> Any:
        return await self._change("POST", f"{job_id}/{approval_id}", decision, None)

    @property
    def changes(self) -> list[tuple[str, str, Any, Any]]:
        return [one for one in self.sent if one[0] != "GET"]


@asynccontextmanager
async def browser_of(visit: Callable[[], Any]) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of a console whose visitor is as told."""
    app = create_app(Settings(gateway_url="http://127.0.0.1:1"))
    app.dependency_overrides[_visitor] = visit
    cast(FastAPI, app).state.schemas.read = schemas
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=OWN) as http:
        yield http


def signed_in(api: Api) -> Callable[[], Visitor]:
    return lambda: Visitor(Session("token", 0.0), cast(Client, api), ME)


async def schemas(_: Any) -> ApiSchemas:
    scopes = {"items": {"enum": ["read", "write", "admin"]}, "description": ""}
    return ApiSchemas({"KeyBody": {"properties": {"scopes": scopes}}})


async def test_a_page_answers_where_only_forms_are_taken():
    async with browser_of(signed_in(Api())) as http:
        answer = await http.get("/jobs/j1/cancel")

    assert answer.status_code == 405 and "There is nothing to read here" in answer.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "destination", "status"),
    [
        ("navigate", "document", 200),
        ("navigate", "iframe", 403),
        ("no-cors", "script", 403),
        ("no-cors", "image", 403),
        ("cors", "empty", 403),
        ("", "", 403),
    ],
)
async def test_a_page_of_another_site_leads_here_and_takes_nothing(site: str, mode: str, destination: str, status: int):
    given = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": destination}
    async with browser_of(signed_in(Api())) as http:
        page = await http.get("/kit", headers={name: value for name, value in given.items() if value})
        own = await http.get("/kit", headers={**given, "sec-fetch-site": "same-origin"})

    assert (page.status_code, own.status_code) == (status, 200)


async def test_the_page_of_a_fault_keeps_the_policy():
    async with browser_of(signed_in(Api(**{"/v1/costs": {}, "/v1/budgets": {}}))) as http:
        answer = await http.get("/costs")

    assert answer.status_code == 500 and "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store" and answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("destination", "told"), [("document", "You are signed out"), ("empty", "")])
async def test_a_form_sent_without_a_key_is_answered_in_words(destination: str, told: str):
    def nobody() -> None:
        raise SignInNeeded

    async with browser_of(nobody) as http:
        answer = await http.post("/jobs/new", data={"input": "long"}, headers={"sec-fetch-dest": destination})

    assert answer.status_code == 401 and told in answer.text and bool(answer.text) is bool(told)


async def test_an_answer_to_a_form_leads_back_to_a_page():
    api = Api(**{"/v1/budgets/month": BUDGET, "/v1/agents": {"agents": []}})
    api.refusal = ApiError("no", status=422)
    async with browser_of(signed_in(api)) as http:
        answer = await http.post("/budgets/month", data={"token": "token", "limit_usd": "5"})

    assert answer.status_code == 422 and 'name="then" value="/costs"' in answer.text


async def test_a_budget_is_saved_only_as_its_form_showed_it():
    api = Api(**{"/v1/budgets/month": BUDGET, "/v1/agents": {"agents": []}})
    async with browser_of(signed_in(api)) as http:
        shown = await http.get("/budgets/month")
        [tag, _] = re.findall(r'name="tag" value="([^"]*)"', shown.text)
        typed = {"token": "token", "tag": tag.replace("&#34;", '"'), "limit_usd": "77", "alerts": "50"}
        saved = await http.post("/budgets/month", data=typed)
        api.refusal = ApiError("it was changed", status=412)
        refused = await http.post("/budgets/month", data=typed)

    assert saved.headers["location"] == "/budgets/month?done=saved"
    assert [headers for *_, headers in api.changes] == [{"If-Match": '"7"'}] * 2
    assert refused.status_code == 422 and OVERTAKEN in refused.text and 'value="77"' in refused.text


async def test_the_keys_are_listed_without_scripts():
    async with browser_of(signed_in(Api())) as http:
        page = await http.get("/keys")

    assert page.text.count("<dt>g j</dt>") == 2 and 'href="/keys"' in page.text


async def test_a_budget_may_be_named_new():
    api = Api(**{"/v1/agents": {"agents": []}, "/v1/budgets/new": {**BUDGET, "name": "new"}})
    async with browser_of(signed_in(api)) as http:
        shown, form = await http.get("/budgets/new"), await http.get("/new-budget")

    assert "Budget new" in shown.text and 'action="/budgets/new"' in shown.text
    assert "New budget" in form.text and 'action="/new-budget"' in form.text


async def test_a_rate_that_is_no_number_makes_no_key():
    api = Api(**{"/v1/keys": {"keys": [], "next_cursor": None}})
    typed = {"token": "token", "name": "ci", "scope": "read", "days": "30", "requests": "1,000", "jobs": "5"}
    async with browser_of(signed_in(api)) as http:
        answer = await http.post("/settings/keys", data=typed)

    assert answer.status_code == 422 and "is not a whole number" in answer.text and api.changes == []
    assert (
        '<option value="30" selected>' in answer.text and 'value="1,000"' in answer.text and 'value="5"' in answer.text
    )


async def test_quotas_that_are_refused_stay_in_the_form_of_their_tenant():
    rates = {"requests": None, "jobs": None}
    limits = {"limits": None, "tenant_rates": rates, "key_rates": rates, "user_rates": rates}
    tenants = {"tenants": [], "next_cursor": None}
    api = Api(**{"/v1/tenants": tenants, "/v1/tenants/other/limits": limits, "/v1/tenants/acme/limits": limits})
    async with browser_of(signed_in(api)) as http:
        answer = await http.post(
            "/settings/tenants/other/limits", data={"token": "token", "tenant.requests": "many", "tenant.jobs": "9"}
        )

    assert answer.status_code == 422 and 'action="/settings/tenants/other/limits"' in answer.text
    assert 'value="many"' in answer.text and 'value="9"' in answer.text and api.changes == []


SESSION: dict[str, Any] = {
    **{"session_id": "s1", "agent": "helper", "user_id": None, "busy_with": None, "turns": 1, "cost_usd": "0"},
    **{"cache_read_share": None, "created_at": "2026-05-01T10:00:00Z", "updated_at": "2026-05-01T10:00:00Z"},
    **{"context": {"entities": [], "tools_used": [], "memories": []}, "page": [], "next_cursor": None},
}
AGENT = {"name": "helper", "version": 3, "labels": []}
MODELS: dict[str, Any] = {"models": []}
OVERVIEW: dict[str, Any] = {
    **{"open": [], "decisions": 0, "decisions_oldest_at": None, "spent": [], "budgets": [], "dead_letters": 0},
}


@pytest.mark.parametrize(
    ("shown", "sent"),
    [
        ("/", "/jobs/new"),
        ("/jobs/j1/fork", "/jobs/j1/fork"),
        ("/jobs/new", "/jobs/new"),
        ("/sessions/one?id=s1", "/sessions/one/continue?id=s1"),
        ("/agents/helper/try",) * 2,
    ],
)
async def test_a_form_that_is_sent_twice_submits_one_job(shown: str, sent: str):
    agents = {"/v1/agents": {"agents": [AGENT]}, "/v1/agents/helper": AGENT, "/v1/sessions/s1": SESSION}
    home = {
        "/v1/overview": OVERVIEW,
        "/v1/jobs": {"jobs": []},
        "/health/ready": {},
        "/v1/mcp/servers": {},
        "/v1/pauses": {},
        "/v1/budgets": {},
    }
    job = {"job_id": "j1", "input": "hi", "status": "failed"}
    api = Api(**agents, **home, **{"/v1/costs": {}, "/v1/jobs/j1": job, "/v1/models": MODELS})
    async with browser_of(signed_in(api)) as http:
        forms = [(await http.get(shown)).text for _ in range(2)]
        keys = [re.findall(r'name="key" value="([0-9a-f]{32})"', form) for form in forms]
        for [key] in (keys[0], keys[0], keys[1]):
            await http.post(sent, data={"token": "token", "key": key, "agent": "helper", "input": "hi"})

    first, again, other = [key for _, path, body, key in api.changes if "dry_run" not in body.get("options", {})]
    assert first == again != other and keys[0][0] in str(first)


def test_an_overtaken_change_says_what_saving_again_does():
    with pytest.raises(ApiError):
        reason_of_save(ApiError("away", status=503))

    assert reason_of_save(ApiError("it has changed", status=412)) == OVERTAKEN
    assert reason_of_save(ApiError("too long", status=422)) == "too long"


async def test_a_subject_that_is_refused_stays_in_its_form():
    api = Api(**{"/v1/subjects": {"subjects": [], "next_cursor": None}})
    api.refusal = ApiError("it is there already", status=412)
    async with browser_of(signed_in(api)) as http:
        answer = await http.post(
            "/knowledge/subjects", data={"token": "token", "type": "client", "id": "acme", "name": "Acme Ltd."}
        )

    assert answer.status_code == 422 and "it is there already" in answer.text
    assert all(f'value="{typed}"' in answer.text for typed in ("client", "acme", "Acme Ltd."))


@pytest.mark.parametrize("name", ["../keys", "a/versions", "A b"])
async def test_a_copy_needs_the_name_of_an_agent(name: str):
    api = Api()
    async with browser_of(signed_in(api)) as http:
        answer = await http.get("/new-agent", params={"copy_of": name})

    assert answer.status_code == 404 and api.sent == []


async def test_a_key_that_was_just_revoked_leads_to_sign_in():
    def revoked(**_: Any) -> Any:
        raise ApiError("this key was revoked", code="unauthorized", status=401)

    api = Api(**{"/v1/budgets": revoked, "/v1/costs": revoked, "/v1/jobs": revoked})
    async with browser_of(signed_in(api)) as http:
        answer = await http.get("/jobs?s=a", headers={"sec-fetch-dest": "document"})
        region = await http.get("/jobs?s=a", headers={"sec-fetch-dest": "empty"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?then=%2Fjobs%3Fs%3Da")
    assert region.status_code == 401
