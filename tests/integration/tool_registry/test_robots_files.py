"""Pages are fetched as the robots.txt of their sites ask, also where that file is strange or away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from wayline.guarded_http import AddressPolicy, GuardedClient
from wayline.simulator.website import Page, Website
from wayline.tool_registry.web.fetching import CannotFetch
from wayline.tool_registry.web.pages.document_reader import DocumentReader
from wayline.tool_registry.web.pages.robots_files import RobotsFiles
from wayline.tool_registry.web.pages.web_pages import WebPages

RULES = "User-agent: *\nDisallow: /private\n"
ROBOTS = Page(RULES, media_type="text/plain")
PAGE = Page("A page.", media_type="text/plain")


def redirect(to: str) -> Page:
    return Page(status=302, headers={"Location": to})


def client_for(*sites: Website) -> GuardedClient:
    return GuardedClient(AddressPolicy.of([f"127.0.0.1:{site.port}" for site in sites]))


@asynccontextmanager
async def pages_of(*sites: Website) -> AsyncIterator[WebPages]:
    reader = DocumentReader()
    yield WebPages(client_for(*sites), reader, backoff_first_s=0.001)
    await reader.close()


def site_with(*robots: Page) -> Website:
    """Answer with each robots.txt in turn, with the last one for ever."""
    turns = list(robots)
    site = Website({"/page": PAGE, "/private": PAGE})
    site.pages["/robots.txt"] = lambda request: turns.pop(0) if len(turns) > 1 else turns[0]
    return site


async def refusal(pages: WebPages, url: str) -> CannotFetch:
    with pytest.raises(CannotFetch) as refused:
        await pages.fetch("t", url)
    return refused.value


async def test_a_redirect_to_a_forbidden_page_is_not_followed():
    async with site_with(ROBOTS) as site, pages_of(site) as pages:
        site.pages["/moved"] = redirect("/private")
        error = await refusal(pages, site.url("/moved"))

    assert error.code == "robots"
    assert site.paths == ["/robots.txt", "/moved"]


async def test_a_redirect_to_another_site_asks_its_robots_first():
    async with site_with(ROBOTS) as other, site_with(ROBOTS) as site, pages_of(site, other) as pages:
        site.pages["/out"] = redirect(other.url("/private"))
        site.pages["/fine"] = redirect(other.url("/page"))
        error = await refusal(pages, site.url("/out"))
        page = await pages.fetch("t", site.url("/fine"))

    assert (error.code, page.text) == ("robots", "A page.")
    assert other.paths == ["/robots.txt", "/page"]


@pytest.mark.parametrize("status", [429, 403, 503])
async def test_a_robots_file_that_fails_once_is_asked_for_again(status: int):
    async with site_with(Page("busy", status=status), ROBOTS) as site, pages_of(site) as pages:
        page = await pages.fetch("t", site.url("/page"))
        error = await refusal(pages, site.url("/private"))

    assert (page.text, error.code) == ("A page.", "robots")
    assert site.paths == ["/robots.txt", "/robots.txt", "/page"]


@pytest.mark.parametrize("robots", [Page("busy", status=429), Page("oops", status=500), Page("User-agent", cut=True)])
async def test_a_site_whose_robots_file_fails_is_left_alone(robots: Page):
    async with site_with(robots) as site, pages_of(site) as pages:
        error = await refusal(pages, site.url("/page"))

    assert error.code == "robots_unavailable"
    assert "cannot be read now" in str(error) and "asks programs" not in str(error)
    assert set(site.paths) == {"/robots.txt"}


@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_a_site_without_a_robots_file_is_read(status: int):
    async with site_with(Page("no", status=status)) as site, pages_of(site) as pages:
        page = await pages.fetch("t", site.url("/page"))

    assert page.text == "A page."


async def test_a_robots_file_that_failed_is_asked_for_a_minute_later():
    now = [0.0]
    async with site_with(Page("busy", status=429, headers={"Retry-After": "60"}), ROBOTS) as site:
        robots = RobotsFiles(client_for(site), backoff_first_s=0.001, clock=lambda: now[0])
        for now[0] in (0.0, 59.0):
            with pytest.raises(CannotFetch, match="status 429"):
                await robots.check(site.url("/page"))
        kept = len(site.seen)
        now[0] = 60.0
        await robots.check(site.url("/page"))

    assert (kept, len(site.seen)) == (1, 2)


async def test_rules_behind_a_byte_order_mark_count():
    async with site_with(Page(RULES.encode("utf-8-sig"))) as site, pages_of(site) as pages:
        error = await refusal(pages, site.url("/private"))

    assert error.code == "robots"


async def test_the_beginning_of_a_large_robots_file_counts():
    comment = "# a line\n"
    before = comment * (500 * 1024 // len(comment) - 10)
    text = f"{before}{RULES}{comment * 10_000}Disallow: /page\n"
    async with site_with(Page(text)) as site, pages_of(site) as pages:
        page = await pages.fetch("t", site.url("/page"))
        error = await refusal(pages, site.url("/private"))

    assert (page.text, error.code) == ("A page.", "robots")
    assert site.paths.count("/robots.txt") == 1


async def test_a_site_that_is_not_there_is_unreachable():
    async with site_with(ROBOTS) as site:
        pages_here = pages_of(site)
    async with pages_here as pages:
        error = await refusal(pages, site.url("/page"))

    assert error.code == "unreachable" and "robots" not in str(error)
