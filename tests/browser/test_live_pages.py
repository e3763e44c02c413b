"""Pages that move by themselves: whatever is cut meanwhile, afterwards they are what a fresh load shows."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Page, expect

from wayline.simulator.chat_server import Say
from wayline.testkit import until

from ..integration.console.conftest import AGENT, Console, console_at
from .conftest import Shown, Window
from .cut_wire import Wire

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

CUT_QUIETLY = ("Failed to load resource", "net::ERR_", "NetworkError", "Failed to fetch", "TypeError: ")
"""What Chromium itself says of a connection that broke; nothing else may be said."""
CUTS = 16
"""Of each of the three kinds, in `make browser`."""


def held() -> tuple[asyncio.Event, Say]:
    """Return a reply that stops after its first word, and what lets it go on."""
    release = asyncio.Event()
    return release, Say(text="One two **three**.", hold=release)


async def submitted(console: Console, agent: str = AGENT) -> str:
    return (await console.api.post("/v1/jobs", json={"agent": agent, "input": "Tell me."})).json()["job_id"]


async def ended(console: Console, job_id: str) -> None:
    async def at_end() -> bool:
        return bool((await console.api.get(f"/v1/jobs/{job_id}")).json()["ended_at"])

    await until(at_end, why="the job has ended")


def without_ages(html: str) -> str:
    """Return what a page shows, without the ages that change with each load and tokens of forms."""
    html = re.sub(r"<time[^>]*>[^<]*</time>", "", html)
    return " ".join(re.sub(r' data-(live|region)="[^"]*"| class=""', "", html).split())


async def live_html(page: Page) -> str:
    return without_ages(await page.locator("#live").inner_html())


async def equals_a_fresh_load(shown: Shown) -> None:
    """Wait until a page is what a fresh load of it shows."""
    other = await shown.page.context.new_page()
    try:

        async def same() -> bool:
            # What is stored later, such as feedback and costs, is in a later load.
            await other.goto(shown.page.url)
            return await live_html(shown.page) == await live_html(other)

        await until(same, why="the page is what a fresh load shows")
    finally:
        await other.close()


async def test_a_finished_jobs_page_opens_no_stream(window: Window):
    job = await window.console.run()
    async with window.open() as shown:
        page = await shown.goto(f"/jobs/{job['job_id']}")
        await page.wait_for_load_state("networkidle")

        assert shown.streams == []


async def hide(page: Page, hidden: bool) -> None:
    """Have a page believe that its tab is hidden or shown: without a screen there is none that hides it."""
    await page.evaluate(
        "(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


async def test_a_hidden_tab_closes_its_stream_until_it_is_shown(window: Window):
    release, say = held()
    window.console.answers(say)
    job_id = await submitted(window.console)
    async with window.open() as shown:
        page = await shown.goto(f"/jobs/{job_id}")
        await until(lambda: len(shown.streams) == 1, why="the page listens")
        await hide(page, True)
        await until(lambda: shown.streams == [], why="the stream is closed")
        release.set()
        await ended(window.console, job_id)
        await hide(page, False)
        await expect(page.locator(".said strong")).to_have_text("three")
        await equals_a_fresh_load(shown)


@pytest.mark.slow
async def test_ten_live_tabs_do_not_block_an_eleventh(window: Window):
    release, say = held()
    window.console.answers(say)
    jobs = [await submitted(window.console) for _ in range(11)]
    async with window.open() as shown:
        tabs = []
        for job_id in jobs[:10]:
            page = await shown.page.context.new_page()
            await page.goto(f"{shown.url}/jobs/{job_id}")
            await hide(page, True)
            tabs.append(page)
        page = await shown.goto(f"/jobs/{jobs[10]}")
        await until(lambda: len(shown.streams) == 1, why="the page listens")
        release.set()
        await expect(page.locator(".said strong")).to_have_text("three")
        for job_id in jobs:
            await ended(window.console, job_id)


@asynccontextmanager
async def wired(console: Console) -> AsyncIterator[tuple[str, dict[str, Wire]]]:
    """Yield a console between two wires: to its browsers, and to the gateway."""
    async with Wire.to(str(console.api.base_url)) as gateway, console_at(gateway.url) as url, Wire.to(url) as browsers:
        yield browsers.url, {"gateway": gateway, "network": browsers}


@pytest.mark.parametrize("what", ["gateway", "network"])
async def test_a_page_cut_in_mid_answer_ends_as_fresh(window: Window, what: str):
    release, say = held()
    window.console.answers(say)
    async with wired(window.console) as (url, wires), window.open(url=url) as shown:
        page = await shown.goto(f"/jobs/{await submitted(window.console)}")
        await until(lambda: len(shown.streams) == 1, why="the page listens")
        wires[what].cut()
        release.set()
        await ended(window.console, page.url.rpartition("/")[2])
        wires[what].mend()
        await expect(page.locator(".said strong")).to_have_text("three", timeout=30_000)
        await equals_a_fresh_load(shown)
        shown.problems[:] = [one for one in shown.problems if not any(word in one for word in CUT_QUIETLY)]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", ["gateway", "network", "both"])
async def test_a_page_cut_at_random_moments_ends_as_fresh(window: Window, what: str):
    chosen = random.Random(what)
    await window.console.save("clock", tools=("get_current_time",))
    async with wired(window.console) as (url, wires), window.open(url=url) as shown:
        cut = list(wires.values()) if what == "both" else [wires[what]]
        for _ in range(CUTS):
            calls: Any = Say(text="I look at it.", tools=(("get_current_time", {"timezone": "UTC"}),), pace_s=0.02)
            window.console.answers(calls, Say(text="It is noon, " * 6 + "**three**.", pace_s=0.02))
            job_id = await submitted(window.console, "clock")
            page = await shown.goto(f"/jobs/{job_id}")
            await asyncio.sleep(chosen.uniform(0, 0.6))
            for wire in cut:
                wire.cut()
            await asyncio.sleep(chosen.uniform(0, 0.4))
            for wire in cut:
                wire.mend()
            await ended(window.console, job_id)
            await expect(page.locator(".said strong")).to_have_text("three", timeout=30_000)
            await equals_a_fresh_load(shown)
            shown.problems[:] = [one for one in shown.problems if not any(word in one for word in CUT_QUIETLY)]
