"""What providers answer becomes hits, whatever strange values are in it."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.tool_registry.web.searches.search_providers import PROVIDERS
from wayline.tool_registry.web.searches.search_request import SearchHit, SearchRequest

IMAGES = SearchRequest("tides", "image")


def hits(provider: str, answer: Any, request: SearchRequest = IMAGES) -> list[SearchHit]:
    return PROVIDERS[provider]("https://search.example", "key").hits(request, answer)


def image_answer(provider: str, address: Any) -> Any:
    url = "https://sea.example"
    if provider == "searxng":
        return {"results": [{"url": url, "img_src": address}]}
    if provider == "brave":
        return {"results": [{"url": url, "properties": {"url": address}}]}
    return {"images": [{"url": address}]}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("address", [{"a": 1}, ["x"], 7, None])
def test_an_image_address_that_is_no_text_is_left_out(provider: str, address: Any):
    assert [hit.image_url for hit in hits(provider, image_answer(provider, address))] in ([None], [])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_image_address_without_a_scheme_gets_one(provider: str):
    [hit] = hits(provider, image_answer(provider, "//sea.example/a.png"))

    assert hit.image_url == "https://sea.example/a.png"


def test_control_characters_of_a_hit_are_left_out():
    answer = {"results": [{"url": "https://a.example", "title": "T\x1b[31mides\x00", "content": "\ud800rise"}]}
    [hit] = hits("searxng", answer, SearchRequest("tides"))

    assert (hit.title, hit.snippet) == ("Tides", "rise")
