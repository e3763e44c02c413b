"""Every page in light and dark, wide and narrow: nothing serious for axe, nothing said, none wider than its window."""

from __future__ import annotations

import pytest

from wayline.console.pages.frame import SECTIONS
from wayline.simulator.chat_server import Say

from .conftest import ALL, Looks, Window, slow
from .test_tasks import asks, stored

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

ALSO = ("retrieval", "notifier")
"""Services that pages need beside those of every console."""
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
