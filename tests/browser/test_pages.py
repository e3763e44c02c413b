"""Every page in light and dark, wide and narrow: nothing serious for axe, nothing said, none wider than its window."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from wayline.console.pages.frame import SECTIONS
from wayline.console.render.waterfall import ROWS_FIRST
from wayline.simulator.chat_server import Say
from wayline.testkit import until

from .conftest import ALL, Looks, Window, slow
from .test_tasks import asks, asks_everywhere, stored

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

ALSO = ("retrieval", "notifier")
"""Services that pages need beside those of every console."""
DROP = """(what) => {
  const dropped = new DataTransfer();
  if (what === 'text') dropped.setData('text/plain', 'a word');
  else dropped.items.add(new File(['x'], what));
  const drop = new DragEvent('drop', {dataTransfer: dropped, bubbles: true, cancelable: true});
  document.querySelector('main').dispatchEvent(drop);
  return [drop.defaultPrevented, document.querySelector('[type=file]').files.length];
}"""
"""What is dropped on a page: whether a script took it, and how many files its form has then."""
PAGES = tuple(address for group in SECTIONS for address, _, _ in group)


async def problems_of(window: Window, looks: Looks, paths: list[str]) -> dict[str, list[str]]:
    """Return what is wrong with pages, by their addresses."""
    wrong = dict[str, list[str]]()
    async with window.open(looks) as shown:
        for path in paths:
            await shown.goto(path)
            wrong[path] = await shown.accessible() + shown.problems
            shown.problems.clear()
    return {path: found for path, found in wrong.items() if found}


async def test_home_and_the_components_are_accessible(window: Window):
    assert await problems_of(window, ALL[0], ["/", "/kit"]) == {}


async def test_dropped_files_join_the_form_and_text_does_not(window: Window):
    async with window.open() as shown:
        page = await shown.goto("/jobs/new")
        took = [await page.evaluate(DROP, what) for what in ("a.md", "text", "b.md")]
        await shown.goto("/knowledge/upload")
        text = await page.evaluate(DROP, "text")

    assert (took, text) == ([[True, 1], [False, 1], [True, 2]], [False, 0])


async def test_home_asks_the_services_where_somebody_comes_near(window: Window):
    async with window.open(Looks(width=390)) as shown:
        page = await shown.goto("/")
        await page.get_by_role("heading", name="Services").scroll_into_view_if_needed()
        await expect(page.locator("[data-later]").get_by_role("link", name="tool registry")).to_be_visible()

        assert await shown.accessible() == []


async def test_the_list_of_jobs_fits_a_usual_window(window: Window):
    await window.console.run("Pay the order back. " * 9, job_id=f"redrive_{'0' * 32}")
    async with window.open(Looks(width=1200)) as shown:
        page = await shown.goto("/jobs")
        cut = (
            "() => Math.max(...[...document.querySelectorAll('.wide')].map((one) => one.scrollWidth - one.clientWidth))"
        )

        await expect(page.locator("[data-job^=redrive]")).to_be_visible()
        assert await page.evaluate(cut) == 0


@pytest.mark.slow
async def test_a_long_trace_goes_on_where_somebody_scrolls(window: Window):
    job_id = await asks_everywhere(window.console, "It is noon.")
    await stored(window.console, job_id)
    async with window.open() as shown:

        async def is_settled() -> bool:
            page = await shown.goto(f"/jobs/{job_id}?view=trace")
            return await page.locator("#live[data-live]").count() == 0

        await until(is_settled, why="no more spans are awaited")
        page = shown.page
        rows = page.locator(".waterfall tbody tr")
        more = page.get_by_role("link", name="Show more spans")
        await expect(rows).to_have_count(ROWS_FIRST)
        await rows.first.evaluate("row => row.title = 'as it was'")
        await more.scroll_into_view_if_needed()
        await expect(more).to_have_count(0)
        await expect(page.get_by_text(re.compile(r"in all · \d+ spans"))).to_be_visible()
        said = await page.get_by_text("in all ·").inner_text()
        await expect(rows).to_have_count(int(said.split(" · ")[1].split()[0]))
        await expect(rows.first).to_have_attribute("title", "as it was")


@slow(*ALL)
async def test_every_page_is_accessible_with_something_in_it(window: Window, looks: Looks):
    await asks(window.console)
    window.console.answers(Say(text="Looking.", tools=(("get_current_time", {"timezone": "UTC"}),)), "It is noon.")
    await window.console.save("clock", tools=("get_current_time",))
    job = await window.console.run("What time is it?", agent="clock")
    await stored(window.console, job["job_id"])
    paths = [*PAGES, "/jobs/new", "/new-budget", "/kit", "/costs?by=hour&days=1"]
    paths += [f"/jobs/{job['job_id']}?view={view}" for view in ("conversation", "trace", "events", "raw")]

    assert await problems_of(window, looks, paths) == {}
