"""Pages are compressed for those whose requests no other site can choose."""

from __future__ import annotations

import gzip

import pytest

from wayline.console.pages.compressed_page import LEAST_BYTES, compressed

from .test_requests import Api, browser_of, signed_in

FOLLOWED = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    ("site", "is_compressed"), [("same-origin", True), ("none", True), ("cross-site", False), ("same-site", False)]
)
async def test_a_page_another_site_led_to_is_not_compressed(site: str, is_compressed: bool):
    async with browser_of(signed_in(Api())) as http:
        answer = await http.get("/keys", headers={"sec-fetch-site": site, **FOLLOWED})

    assert answer.status_code == 200 and "Keys" in answer.text
    assert (answer.headers.get("content-encoding") == "gzip") is is_compressed


@pytest.mark.parametrize(
    ("address", "is_compressed"), [("/keys", True), ("/keys?view=raw", True), ("/keys?q=a", False)]
)
async def test_a_part_asked_for_with_words_is_not_compressed(address: str, is_compressed: bool):
    async with browser_of(signed_in(Api())) as http:
        answer = await http.get(address, headers={"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"})

    assert answer.status_code == 200
    assert (answer.headers.get("content-encoding") == "gzip") is is_compressed


@pytest.mark.parametrize("encodings", ["identity", "br"])
async def test_a_page_is_plain_where_gzip_is_not_taken(encodings: str):
    async with browser_of(signed_in(Api())) as http:
        answer = await http.get("/keys", headers={"accept-encoding": encodings})

    assert answer.status_code == 200 and "content-encoding" not in answer.headers


async def test_a_page_is_plain_where_the_site_is_not_told():
    async with browser_of(signed_in(Api())) as http:
        del http.headers["sec-fetch-site"]
        answer = await http.get("/keys")

    assert answer.status_code == 200 and "content-encoding" not in answer.headers


def test_a_short_page_is_sent_as_it_is():
    page = b"<p>short</p>" * 2_000

    assert compressed(page[: LEAST_BYTES - 1]) is None
    assert gzip.decompress(compressed(page) or b"") == page
