"""The page where a browser begins a login, the cookie that it gets there, and the callback that needs it."""

from __future__ import annotations

import re

import httpx2
import pytest_asyncio

from wayline.contracts.errors import Reject
from wayline.contracts.server_logins import FinishAuthorization, GetLogin, LoginView, OpenLogin
from wayline.gateway.login_pages import cookie_of
from wayline.testkit import Platform

from .conftest import Running, start_gateway
from .others import Others

LINK = "/v1/mcp/oauth/start?state=acme.s1"
BACK = "/v1/mcp/oauth/callback?state=acme.s1&code=c1&iss=https://login.example"
PAGE = {"Accept": "text/html,application/xhtml+xml"}


@pytest_asyncio.fixture
async def answered(others: Others) -> Others:
    """The registry, which knows the login `acme.s1` of alice."""
    for kind in (GetLogin, OpenLogin, FinishAuthorization):
        await others.answer(kind)
    return others


def form_of(page: httpx2.Response) -> dict[str, str]:
    return dict(re.findall(r'name="(\w+)" value="([^"]+)"', page.text))


def finished(others: Others) -> list[FinishAuthorization]:
    return [one for one in others.asked if isinstance(one, FinishAuthorization)]


async def test_a_page_says_whose_access_goes_where_and_leads_on(gateway: Running, answered: Others):
    async with httpx2.AsyncClient(base_url=gateway.url, headers=PAGE) as browser:
        page = await browser.get(LINK)
        going = await browser.post("/v1/mcp/oauth/start", data=form_of(page))
        done = await browser.get(BACK)

    [opened] = [one for one in answered.asked if isinstance(one, OpenLogin)]
    [asked] = finished(answered)
    cookie = page.headers["set-cookie"]
    assert all(word in page.text for word in ("bank", "acme", "alice", "login.example", "began this login yourself"))
    assert all(part in cookie for part in ("HttpOnly", "SameSite=lax", "Path=/", "Max-Age=600"))
    assert (going.status_code, going.headers["location"]) == (303, "https://login.example/authorize?state=acme.s1")
    assert (asked.tenant, asked.state, asked.code, asked.iss) == ("acme", "acme.s1", "c1", "https://login.example")
    assert opened.browser == asked.browser == form_of(page)["browser"]
    assert (done.status_code, "Tenant acme is logged in" in done.text) == (200, True)
    assert page.headers["x-frame-options"] == "DENY"
    assert {one.headers["cache-control"] for one in (page, going, done)} == {"no-store"}
    assert {one.headers["referrer-policy"] for one in (page, going, done)} == {"no-referrer"}


async def test_a_form_without_the_pages_cookie_leads_nowhere(gateway: Running, answered: Others):
    async with httpx2.AsyncClient(base_url=gateway.url) as browser, httpx2.AsyncClient(base_url=gateway.url) as other:
        form = form_of(await browser.get(LINK))
        await other.get(LINK)

        refused = [
            await one.post("/v1/mcp/oauth/start", data=data)
            for one, data in (
                (gateway.client, form),
                (other, form),
                (browser, {"state": "acme.s1"}),
                (browser, {**form, "state": "acme.s2"}),
            )
        ]

    assert [(one.status_code, one.json()["code"]) for one in refused] == [(400, "another_browser")] * 4
    assert not [one for one in answered.asked if isinstance(one, OpenLogin)]


async def test_a_form_with_a_state_that_no_login_has_is_refused(gateway: Running, answered: Others):
    state, secret = f"acme.{'s' * 500}", "b" * 43
    cookies = {cookie_of(state, at=gateway.url): secret}
    async with httpx2.AsyncClient(base_url=gateway.url, cookies=cookies) as browser:
        refused = await browser.post("/v1/mcp/oauth/start", data={"state": state, "browser": secret})

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_state")
    assert not answered.asked


async def test_a_callback_in_another_browser_brings_no_secret_of_the_first(gateway: Running, others: Others):
    await others.answer(GetLogin)
    await others.answer(FinishAuthorization, Reject("begun in another browser", code="another_browser", status=400))
    async with httpx2.AsyncClient(base_url=gateway.url) as browser, httpx2.AsyncClient(base_url=gateway.url) as other:
        await browser.get(LINK)
        await other.get("/v1/mcp/oauth/start?state=acme.s2")

        read = await other.get(BACK, headers=PAGE)
        told = await other.get(BACK)

    assert [one.browser for one in finished(others)] == [None, None]
    assert (read.status_code, told.status_code) == (400, 400)
    assert "Begun in another browser." in read.text
    assert told.json()["code"] == "another_browser"


async def test_over_tls_the_cookie_is_the_hosts_alone(platform: Platform, others: Others):
    await others.answer(GetLogin)
    gateway = await start_gateway(platform, public_url="https://wayline.example")

    page = await gateway.client.get(LINK)

    cookie = page.headers["set-cookie"]
    assert cookie.startswith("__Host-wayline-login-")
    assert "Secure" in cookie and "Domain" not in cookie


async def test_a_name_of_another_page_is_shown_as_text(gateway: Running, others: Others):
    hostile = "<script>alert(1)</script>"
    await others.answer(GetLogin, LoginView(name="bank", user_id=hostile, authorization_server=hostile))

    page = await gateway.client.get(LINK)
    unknown = await gateway.client.get("/v1/mcp/oauth/start?state=*.s1", headers=PAGE)

    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text
    assert unknown.status_code == 400
