"""Documents are fetched from addresses of the public web, behind the guard; what is not fetched says why."""

from typing import Any

import pytest

from wayline.simulator.website import Page, Website

from .conftest import Start

PAGE = "<html><head><title>Tides</title></head><body><article><h1>Tides</h1><p>{}</p></article></body></html>"


async def test_a_document_is_fetched_and_holds_the_words_of_strangers(start: Start, client: Any):
    page = PAGE.format("Прилив приходит дважды в сутки. " * 9).encode("cp1251")
    async with Website({"/tides": Page(page, media_type="text/html; charset=windows-1251")}) as site:
        await start(fetch_allowed_hosts=(f"127.0.0.1:{site.port}",))
        first = await client.ingest("d1", url=site.url("/tides"), media_type="")
        again = await client.ingest("d1", url=site.url("/tides"), media_type="")
    hit = (await client.search("прилив", mode="keyword")).hits[0]

    assert (first.status, first.trust, first.size_bytes, first.language) == ("ready", "untrusted", len(page), "ru")
    assert (again.status, again.unchanged) == ("ready", True)
    assert (hit.untrusted, hit.text.startswith("# Tides")) == (True, True)


@pytest.mark.parametrize(
    ("settings", "path", "says"),
    [
        ({}, "/tides", "was not fetched from http://127.0.0.1"),
        ({"fetch_urls": False}, "/tides", "WAYLINE_RETRIEVAL_FETCH_URLS"),
        ({"fetch_allowed_hosts": ("127.0.0.1:*",)}, "/nothing", "404"),
        ({"fetch_allowed_hosts": ("127.0.0.1:*",), "document_bytes_max": 10}, "/tides", "was not fetched"),
    ],
    ids=["inside", "switched off", "missing", "too large"],
)
async def test_what_is_not_fetched_says_why(start: Start, client: Any, settings: dict[str, Any], path: str, says: str):
    async with Website({"/tides": Page(PAGE.format("words " * 99), media_type="text/html")}) as site:
        await start(**settings)
        document = await client.ingest("d1", url=site.url(path))

    assert document.status == "failed"
    assert says in document.error
