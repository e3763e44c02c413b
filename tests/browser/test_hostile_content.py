"""Words of strangers in Chromium: nothing runs, nothing leaves, nothing of a page is theirs, and none is too wide."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import Route, expect

from wayline.console.access.guard import HEADERS
from wayline.simulator.chat_server import Say
from wayline.testkit import until

from ..console_pages import PAGES, HostilePage
from ..console_payloads import DATA, HTML, LEAVES_ATTRIBUTE, LINKS, PAYLOADS
from ..integration.console.conftest import AGENT, console_at
from ..unit.console.test_hostile_content import batches, harmless
from .conftest import Looks, Shown, Window, watched

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

WIDTHS = (1280, 390)
ELEMENTS = """() => {
  const counts = {};
  for (const one of document.querySelectorAll("*")) {
    if (one.closest("[hx-ignore]")?.contains(one) && !one.matches("[hx-ignore]")) continue;
    counts[one.localName] = (counts[one.localName] ?? 0) + 1;
  }
  return counts;
}"""
"""How often each element stands outside of strangers' prose, as the browser has parsed the page."""
FOREIGN = """() => [...document.querySelectorAll("*")].filter((one) =>
  ["iframe", "object", "embed", "base", "style", "frame"].includes(one.localName)
  || (one.localName === "script" && !one.getAttribute("src")?.startsWith("/static/"))
  || Element.prototype.getAttributeNames.call(one).some((name) => /^(on|style$|hx-on)/.test(name))
  || /^\\s*(javascript|data|vbscript):/i.test(one.getAttribute("href") ?? "")
).map((one) => one.outerHTML.slice(0, 200))"""
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


async def problems_of(shown: Shown, page: str, plain: str) -> list[str]:
    """Return what is wrong with a page of strangers' words, beside the same page with plain ones."""
    counts, found = list[Any](), list[str]()
    bodies = [html.encode("utf-8", "replace") for html in (plain, page)]
    headers = {**HEADERS, "Content-Type": "text/html; charset=utf-8"}
    left = iter(bodies)

    async def answer(route: Route) -> None:
        await route.fulfill(body=next(left), headers=headers)

    await shown.page.route("**/hostile", answer)
    for _ in bodies:
        await shown.goto("/hostile")
        counts.append(await shown.page.evaluate(ELEMENTS))
    await shown.page.unroute("**/hostile", answer)
    found += [] if counts[0] == counts[1] else [f"other elements: {counts}"]
    found += await shown.page.evaluate(FOREIGN)
    for width in WIDTHS:
        await shown.page.set_viewport_size({"width": width, "height": 900})
        found += [f"it is wider than {width}"] if await shown.page.evaluate(TOO_WIDE) else []
    found += ["it went elsewhere"] if shown.page.url != f"{shown.url}/hostile" else []
    return found + shown.problems


def documents_of(pages: str) -> list[str]:
    """Return each of several pages by itself."""
    return [f"<!doctype html>{one}" for one in pages.split("<!doctype html>") if one]


def cases(shown: HostilePage, words: list[str]) -> list[tuple[str, str]]:
    """Return pages of strangers' words, each with the same page of plain words of the same lengths."""
    found = list[tuple[str, str]]()
    for batch in batches(shown, words):
        plain = shown.make([harmless(word) for word in batch])
        found += zip(documents_of(shown.make(batch)), documents_of(plain), strict=True)
    return found


@asynccontextmanager
async def without_gateway(chromium: Chromium) -> AsyncIterator[Shown]:
    """Yield a window at a console that has no gateway: the pages are made here, and a job that runs tells nothing."""
    async with console_at("http://127.0.0.1:9") as url, watched(chromium, Looks(), url) as shown:
        await shown.page.route("**/jobs/**", lambda route: route.fulfill(status=204))
        yield shown


async def test_a_job_of_strangers_words_runs_none_of_them(chromium: Chromium):
    async with without_gateway(chromium) as shown:
        [(page, plain)] = cases(PAGES["a job"], [HTML[0], *LEAVES_ATTRIBUTE[:4], *LINKS[:3], "W" * 5_000])

        assert await problems_of(shown, page, plain) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, one in PAGES.items() if not one.is_shaped])
async def test_no_page_of_strangers_words_runs_them_or_grows_wide(chromium: Chromium, name: str):
    words = [word for word in PAYLOADS if word not in DATA]
    wrong = dict[str, list[str]]()
    async with without_gateway(chromium) as shown:
        for number, (page, plain) in enumerate(cases(PAGES[name], words[:: 20 if PAGES[name].at_once == 1 else 1])):
            if found := await problems_of(shown, page, plain):
                wrong[f"{name} {number}"] = found
            shown.problems.clear()

    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("words", [HTML, LINKS, LEAVES_ATTRIBUTE], ids=["html", "links", "attributes"])
async def test_a_streamed_answer_of_a_stranger_runs_nothing(window: Window, words: tuple[str, ...]):
    text = "\n\n".join((*words, "the end"))
    window.console.answers(Say(text=text))
    async with window.open(Looks(width=390)) as shown:
        page = await shown.goto("/jobs/new")
        await page.locator("select[name=agent]").select_option(AGENT)
        await page.get_by_label("What shall it do?").fill(text[:1_500])
        await page.get_by_role("button", name="Submit", exact=True).click()
        await expect(page.locator("[data-ended='1']")).to_have_count(1)
        await until(lambda: shown.streams == [], why="the stream is closed")
        await expect(page.locator(".said .prose").last).to_contain_text("the end")

        assert await page.evaluate(FOREIGN) == []
        assert not await page.evaluate(TOO_WIDE)
