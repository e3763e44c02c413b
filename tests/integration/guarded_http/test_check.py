"""What a caller checks before each request of a chain of redirects."""

from __future__ import annotations

import asyncio

import pytest

from wayline.guarded_http import AddressPolicy, Blocked, GuardedClient, InvalidUrl, Limits, TimedOut
from wayline.simulator.website import Page, Website


class Refused(Exception):
    """The caller does not want this request."""


class Checked:
    """Notes each URL, and refuses those that end in a path."""

    def __init__(self, *, refuse: str = "nothing") -> None:
        self.urls: list[str] = []
        self._refuse = refuse

    async def __call__(self, url: str) -> None:
        self.urls.append(url)
        if url.endswith(self._refuse):
            raise Refused(url)


def client_for(site: Website) -> GuardedClient:
    return GuardedClient(AddressPolicy.of([f"127.0.0.1:{site.port}"]))


def site_with(*redirects: tuple[str, str]) -> Website:
    pages = {path: Page(status=302, headers={"Location": to}) for path, to in redirects}
    return Website({"/page": Page("hello"), **pages})


async def test_each_request_of_a_chain_is_checked_before_it():
    async with site_with(("/a", "/b#there"), ("/b", "page?x=1")) as site:
        checked = Checked()
        answer = await client_for(site).get(site.url("/a"), check=checked)

    assert answer.content == b"hello"
    assert checked.urls == [site.url("/a"), site.url("/b"), site.url("/page?x=1")]


async def test_a_request_that_its_check_refuses_is_not_sent():
    async with site_with(("/a", "/page")) as site:
        with pytest.raises(Refused):
            await client_for(site).get(site.url("/a"), check=Checked(refuse="/page"))

    assert site.paths == ["/a"]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://[::1", InvalidUrl),
        ("http://exa\u2100mple.com/", InvalidUrl),
        ("ftp://a.example/", InvalidUrl),
        ("http://user:secret@a.example/", InvalidUrl),
        ("http://169.254.169.254/", Blocked),
    ],
)
async def test_no_check_is_told_of_a_url_that_is_not_fetched(url: str, error: type[Exception]):
    checked = Checked()

    with pytest.raises(error):
        await GuardedClient().get(url, check=checked)

    assert checked.urls == []


async def test_a_check_counts_within_the_time_limit():
    async def hangs(url: str) -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimedOut):
        await GuardedClient().get("http://a.example/", limits=Limits(total_s=0.01), check=hangs)
