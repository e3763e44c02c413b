"""Dead letters in the console, on the whole platform: looked at, let go on once each, dismissed."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from wayline.contracts import headers as h
from wayline.simulator.chat_server import Say
from wayline.testkit import until

from .conftest import Console

pytestmark = [pytest.mark.asyncio(loop_scope="module")]


async def put_aside(console: Console, body: bytes, reason: str) -> None:
    """Store a letter as the chassis does."""
    headers = {
        **{h.TENANT: "default", h.DEAD_CODE: "invalid_message", h.DEAD_REASON: reason},
        **{h.DEAD_SUBJECT: "jobs.submit.default", h.DEAD_STREAM: "SUBMIT", h.DEAD_CONSUMER: "router"},
    }
    await console.platform.bus.store("dead.SUBMIT.router.default", body, headers)


async def cause_named(console: Console, words: str) -> dict[str, Any]:
    """Return the group of what failed with some words, once tracing has it."""

    async def found() -> dict[str, Any] | None:
        groups = (await console.api.get("/v1/dead-letters/groups")).json()["groups"]
        return next((group for group in groups if words in group["message"]), None)

    return await until(found, why=f"something failed with {words}")


async def test_a_message_is_read_whole_and_dismissed_with_a_reason(console: Console):
    await put_aside(console, b'{"input": "<b>\xe2\x80\xae"}', "the agent is missing")
    async with console.browser() as browser:
        await browser.open("/dead-letters/letters")
        [address] = re.findall(r'href="(/dead-letters/letters/\d+)"', browser.page)
        await browser.open(address)
        whole = browser.page
        unsaid = await browser.send(f"{address}/dismiss", reason="")
        sent = await browser.send(f"{address}/dismiss", reason="asked for again\nas j2")
        gone = await browser.open(address)
        dismissed = await browser.open("/dead-letters/dismissed")
        home = await browser.open("/")

    assert "&lt;b&gt;⟦U+202E⟧" in whole and "the agent is missing" in whole
    assert (unsaid.status_code, 'role="alert"' in unsaid.text) == (422, True)
    assert (sent.status_code, gone.status_code) == (303, 404)
    assert "asked for again as j2" in dismissed.text
    assert "that could not be handled" not in home.text


async def test_home_leads_to_dead_letters(console: Console):
    await put_aside(console, b"{", "it is no JSON")
    group = await cause_named(console, "it is no JSON")
    async with console.browser() as browser:
        await browser.open("/")
        home = browser.page
        await browser.open(f"/dead-letters/causes/{group['fingerprint']}")
        newest = re.search(r'name="newest" value="(\d+)"', browser.page)
        assert newest is not None
        await put_aside(console, b"{", "it is no JSON")
        await browser.send(f"/dead-letters/causes/{group['fingerprint']}/dismiss", reason="not ours", newest=newest[1])
        left = (await console.api.get("/v1/dead-letters")).json()["dead_letters"]

    assert re.search(r'href="/dead-letters"><strong>1</strong> message that could not be handled', home)
    assert len(left) == 1, "what nobody saw is not dismissed"


async def test_failed_jobs_go_on_once_after_a_dry_run(console: Console):
    console.answers(Say(status=401, error={"message": "this key was revoked"}))
    sent = await console.api.post("/v1/jobs", params={"wait": 20}, json={"agent": "helper", "input": "Pay."})
    failed = sent.json()["job_id"]
    group = await cause_named(console, "revoked")
    address = f"/dead-letters/causes/{group['fingerprint']}"
    release = asyncio.Event()
    console.answers(Say(text="It is paid.", hold=release))
    async with console.browser() as browser:
        await browser.open("/dead-letters")
        listed = browser.page
        await browser.open(f"{address}?plan=100")
        planned = browser.page
        nothing_yet = await browser.open(f"{address}/live?plan=100")
        await browser.open(f"{address}?plan=100")
        done = await browser.send(f"{address}/redrive", limit="100")

        async def goes_on() -> bool:
            return "data-live=" in (await browser.open(done.headers["location"])).text

        await until(goes_on, why="the page follows the job that goes on")
        told: list[str] = []
        async with browser.http.stream("GET", f"{address}/live?plan=100") as stream:
            release.set()
            async for line in stream.aiter_lines():
                told += [line] if line.startswith("event:") else []
        region = await browser.open(f"{address}/region?plan=100")
        over = await browser.open(f"{address}/live?plan=100")
        after = await browser.open(done.headers["location"])
        past = await browser.open("/dead-letters/redrives")

    assert address in listed and failed in planned
    assert "Redrive 1<" in planned and "would go on after event" in planned
    assert nothing_yet.status_code == over.status_code == 204
    assert "event: changed" in told
    assert "status-completed" in region.text and 'data-ended="1"' in region.text
    assert region.text.strip() in after.text and "data-live=" not in after.text
    assert "<strong>0</strong> would go on" in after.text and "Redrive 1<" not in after.text
    assert group["fingerprint"] in past.text
