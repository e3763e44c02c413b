"""Who may open pages once the gateway wants keys."""

from __future__ import annotations

import re

import pytest

from .conftest import SAME_ORIGIN, Browser, Console, console_at

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    """The keys of this file's tenant, by what they may do."""
    return {}


SCOPES = {"admin": ["read", "write", "admin", "operator"], "reader": ["read"]}


async def key_of(console: Console, keys: dict[str, str], name: str) -> str:
    """Return an API key; the first one, the administrator's, closes the gateway to programs without one."""
    if name not in keys:
        headers = {"authorization": f"Bearer {keys['admin']}"} if "admin" in keys else {}
        made = await console.api.post("/v1/keys", json={"name": name, "scopes": SCOPES[name]}, headers=headers)
        assert made.status_code == 201, made.text
        keys[name] = made.json()["key"]
    return keys[name]


async def sign_in(browser: Browser, key: str, then: str = "/") -> tuple[int, str]:
    answer = await browser.http.post("/sign-in", data={"key": key, "then": then}, headers=SAME_ORIGIN)
    return answer.status_code, answer.headers.get("location", "")


async def test_a_browser_without_a_key_is_asked_and_led_back(console: Console, keys: dict[str, str]):
    key = await key_of(console, keys, "admin")
    async with console.browser() as browser:
        asked = await browser.open("/jobs?s=status:failed")
        form = await browser.open(asked.headers["location"])
        signed_in = await sign_in(browser, key, then="/jobs?s=status:failed")
        page = await browser.open("/jobs?s=status:failed")

    assert (asked.status_code, asked.headers["location"]) == (303, "/sign-in?then=%2Fjobs%3Fs%3Dstatus%3Afailed")
    assert 'value="/jobs?s=status:failed"' in form.text
    assert signed_in == (303, "/jobs?s=status:failed")
    assert page.status_code == 200 and "Sign out" in page.text


async def test_the_cookie_is_for_this_site_alone_and_hides_the_key(console: Console, keys: dict[str, str]):
    key = await key_of(console, keys, "admin")
    async with console_at(str(console.api.base_url), public_url="https://console.example.com") as url:
        async with console.browser(url) as browser:
            headers = {**SAME_ORIGIN, "host": "console.example.com"}
            answer = await browser.http.post("/sign-in", data={"key": key}, headers=headers)

    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-wayline-console=")
    assert {"HttpOnly", "Secure", "Path=/", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
    assert key not in cookie


async def test_a_key_that_the_gateway_refuses_is_not_kept(console: Console, keys: dict[str, str]):
    await key_of(console, keys, "admin")
    async with console.browser() as browser:
        wrong = await browser.http.post("/sign-in", data={"key": "wl_wrong"}, headers=SAME_ORIGIN)
        broken = await browser.http.post("/sign-in", data={"key": "\u00e9"}, headers=SAME_ORIGIN)

    assert (wrong.status_code, broken.status_code) == (403, 422)
    assert "set-cookie" not in wrong.headers and "wl_wrong" not in wrong.text


async def test_what_a_key_may_not_do_is_disabled_naming_its_scope(console: Console, keys: dict[str, str]):
    await key_of(console, keys, "admin")
    key = await key_of(console, keys, "reader")
    async with console.browser() as browser:
        await sign_in(browser, key)
        await browser.open("/jobs/new")
        button = re.search(r"<button[^>]*>Submit</button>", browser.page)
        forced = await browser.send("/jobs/new", agent="helper", input="anyway")

    assert button is not None and "disabled" in button[0] and "the scope write" in button[0]
    assert forced.status_code == 422 and "write" in forced.text


async def test_signing_out_forgets_the_key(console: Console, keys: dict[str, str]):
    key = await key_of(console, keys, "admin")
    async with console.browser() as browser:
        await sign_in(browser, key)
        await browser.open("/")
        await browser.send("/jobs/searches", s="secret words", name="mine")
        kept = [one.name for one in browser.http.cookies.jar]
        await browser.open("/")
        out = await browser.send("/sign-out")
        page = await browser.open("/")

    assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
    assert "wayline-job-searches" in kept
    assert "wayline-job-searches" not in [one.name for one in browser.http.cookies.jar]
    assert page.status_code == 303


async def test_a_console_with_another_cookie_key_asks_again(console: Console, keys: dict[str, str]):
    key = await key_of(console, keys, "admin")
    async with console.browser() as browser:
        await sign_in(browser, key)
        cookie = browser.http.cookies["wayline-console"]
    async with console_at(str(console.api.base_url)) as url, console.browser(url) as other:
        other.http.cookies.set("wayline-console", cookie)
        page = await other.open("/")

    assert page.status_code == 303


async def test_a_stream_or_region_without_a_key_is_no_page(console: Console, keys: dict[str, str]):
    await key_of(console, keys, "admin")
    async with console.browser() as browser:
        answer = await browser.open("/jobs/j1/live", **{"sec-fetch-dest": "empty"})

    assert answer.status_code == 401
