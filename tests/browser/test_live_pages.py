"""Pages that move by themselves: whatever is cut meanwhile, afterwards they are what a fresh load shows."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from wayline.console.render.waterfall import ROWS_FIRST
from wayline.embedded.ports import free_port
from wayline.simulator.chat_server import Say
from wayline.testkit import until
from wayline.testkit.processes import Fleet

from ..integration.console.conftest import AGENT, Console, console_at
from .conftest import Shown, Window
from .cut_wire import Moment, Wire
from .test_tasks import asks, asks_everywhere

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

CUT_QUIETLY = (
    *("Failed to load resource", "net::ERR_", "NetworkError", "Failed to fetch", "TypeError: "),
    "EventSource's response has a MIME type",
)
"""What Chromium itself says of a connection that broke; nothing else may be said."""
EVENTS = 15
"""A job of these tests sends its page at least so many events."""
NAMED = ("tool.completed", "model.completed", "job.completed")
BYTES = (0, 1, 40, 300, 2_000)
"""How far behind an event a moment is: in the middle of it, of the next one, of the page that is read anew."""


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
        await expect(page.locator("[data-progress]")).to_have_text(re.compile(r"^Step 1 of \d+: Thinking"))
        await hide(page, True)
        await until(lambda: shown.streams == [], why="the stream is closed")
        release.set()
        await ended(window.console, job_id)
        await hide(page, False)
        await expect(page.locator(".said strong")).to_have_text("three")
        await equals_a_fresh_load(shown)


async def test_a_parked_jobs_page_follows_it_to_its_end(window: Window):
    job_id = await asks(window.console)
    async with window.open() as shown:
        # Read anew once its stream is open, while nothing on it tells of progress.
        async with shown.page.expect_response(re.compile("/region")):
            page = await shown.goto(f"/jobs/{job_id}")
        await window.console.api.post(f"/v1/jobs/{job_id}/cancel")
        await expect(page.locator("[data-ended='1']")).to_have_count(1)


@pytest.mark.slow
async def test_a_trace_stays_long_where_an_older_answer_comes_late(window: Window):
    release, say = held()
    job_id = await asks_everywhere(window.console, say)
    short, reading, go_on = re.compile(r"/region\?view=trace$"), asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        answer = await route.fetch()
        reading.set()
        await go_on.wait()
        await route.fulfill(response=answer)

    async with window.open() as shown:
        await shown.page.route(short, hold)
        page = await shown.goto(f"/jobs/{job_id}?view=trace")
        more = page.get_by_role("link", name="Show more spans")
        async with asyncio.timeout(30):
            await reading.wait()
        await more.scroll_into_view_if_needed()
        await expect(page.locator("#live[data-region*='more=all']")).to_have_count(1)
        async with page.expect_response(short):
            go_on.set()

        await expect(more).to_have_count(0)
        assert await page.locator(".waterfall tbody tr").count() > ROWS_FIRST
        release.set()
        await ended(window.console, job_id)


@pytest.mark.slow
async def test_a_trace_is_read_until_its_last_span_is_stored(window: Window):
    release, say = held()
    window.console.answers(say)
    job_id = await submitted(window.console)
    async with window.open() as shown:
        page = await shown.goto(f"/jobs/{job_id}?view=trace")
        await until(lambda: len(shown.streams) == 1, why="the page listens")
        release.set()
        await ended(window.console, job_id)
        # The page reads on for some seconds.
        await expect(page.locator("[data-ended='1']")).to_have_count(1, timeout=30_000)
        await expect(page.locator(".bar-span.open")).to_have_count(0)
        await expect(page.locator(".bar-span")).not_to_have_count(0)
        await equals_a_fresh_load(shown)
        assert shown.streams == []


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
async def test_jobs_that_came_during_a_cut_are_counted(window: Window):
    await window.console.run()
    async with wired(window.console) as (url, wires), window.open(url=url) as shown:
        page = await shown.goto("/jobs")
        await until(lambda: len(shown.streams) == 1, why="the list listens")
        wires["network"].cut()
        await window.console.run()
        await window.console.run()
        wires["network"].mend()
        await expect(page.locator("[data-new]")).to_have_text("2 new", timeout=30_000)
        shown.problems[:] = [one for one in shown.problems if not any(word in one for word in CUT_QUIETLY)]


def moments(what: str, number: int) -> list[Any]:
    """Return moments of a job's stream, by chance and the same at each run: its events in turn, and its last ones."""
    chosen = random.Random(what)
    events = [n * EVENTS // (number - len(NAMED)) for n in range(number - len(NAMED))]
    found = [Moment(event, chosen.choice(BYTES)) for event in (*events, *NAMED)]
    return [pytest.param(what, one, id=f"{what}-{one}", marks=pytest.mark.slow) for one in found]


async def opened_until(shown: Shown, console: Console, wire: Wire, moment: Moment, **act: Any) -> str:
    """Open the page of a job, do something at a moment of its stream, and return the job's id."""
    release = asyncio.Event()
    calls: Any = Say(text="I look at it.", tools=(("get_current_time", {"timezone": "UTC"}),), hold=release)
    console.answers(calls, Say(text="It is noon, " * 6 + "**three**.", pace_s=0.02))
    job_id = await submitted(console, "clock")
    wire.at(moment, **act)
    await shown.goto(f"/jobs/{job_id}")
    # Until then the model is silent: each moment is after the page was opened.
    await until(lambda: shown.streams or wire.has_acted, why="the page listens")
    release.set()
    await until(lambda: wire.has_acted, why=f"{moment} comes")
    return job_id


async def is_whole_at_last(shown: Shown, console: Console, job_id: str) -> None:
    """Wait until a page shows all of its job, as a fresh load does."""
    await ended(console, job_id)
    await expect(shown.page.locator(".said strong")).to_have_text("three", timeout=30_000)
    await equals_a_fresh_load(shown)
    shown.problems[:] = [one for one in shown.problems if not any(word in one for word in CUT_QUIETLY)]


@pytest.mark.parametrize("what,moment", [*moments("network", 12), *moments("gateway", 12), *moments("both", 6)])
async def test_a_page_cut_at_any_moment_ends_as_fresh(window: Window, what: str, moment: Moment):
    console = window.console
    await console.save("clock", tools=("get_current_time",))
    async with wired(console) as (url, wires), window.open(url=url) as shown:
        cut = list(wires.values()) if what == "both" else [wires[what]]
        job_id = await opened_until(shown, console, cut[0], moment, act=lambda: [wire.cut() for wire in cut])
        if moment.is_late:
            await ended(console, job_id)
        await until(lambda: cut[-1].refused, why="the page tries to come back")
        for wire in cut:
            wire.mend()
        await is_whole_at_last(shown, console, job_id)


@dataclass
class Killable:
    """A console and its gateway as processes, and the wire that browsers have to the console."""

    fleet: Fleet
    wire: Wire

    async def start(self, name: str) -> None:
        """Start a process and wait until it answers."""
        process = self.fleet.spawn(name)
        if name == "gateway":
            await process.ready()
        else:
            await until(self._answers, why="the console answers")

    async def _answers(self) -> bool:
        async with httpx2.AsyncClient(trust_env=False) as http:
            try:
                return (await http.get(f"{self.wire.target}/health/live")).status_code == 200
            except httpx2.TransportError:
                return False

    def kill(self, name: str) -> None:
        for process in self.fleet.running(name):
            process.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def killable(opened: Console, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Killable]:
    fleet = await opened.platform.make_fleet(tmp_path_factory.mktemp("processes"), "gateway")
    gateway, console = free_port(), free_port()
    fleet.set("gateway", WAYLINE_HTTP_PORT=str(gateway))
    address = {"PORT": str(console), "GATEWAY_URL": f"http://127.0.0.1:{gateway}", "COOKIE_KEY": "0" * 64}
    fleet.set("console", **{f"WAYLINE_CONSOLE_{name}": value for name, value in address.items()})
    async with Wire.to(f"http://127.0.0.1:{console}") as wire:
        found = Killable(fleet, wire)
        await found.start("gateway")
        await found.start("console")
        yield found


@pytest.mark.parametrize("what,moment", [*moments("gateway", 10), *moments("console", 10)])
async def test_a_page_whose_server_is_killed_ends_as_fresh(
    window: Window, killable: Killable, what: str, moment: Moment
):
    console, wire = window.console, killable.wire
    await console.save("clock", tools=("get_current_time",))
    async with window.open(url=wire.url) as shown:
        job_id = await opened_until(shown, console, wire, moment, act=lambda: killable.kill(what))
        if moment.is_late:
            await ended(console, job_id)
        await killable.start(what)
        await is_whole_at_last(shown, console, job_id)
