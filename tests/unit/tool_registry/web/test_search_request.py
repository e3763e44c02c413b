"""What providers are asked for, and what is tried when nothing was found."""

from __future__ import annotations

from datetime import date
from typing import get_args

import pytest

from wayline.tool_registry.web.searches.search_request import (
    SearchHit,
    SearchRequest,
    read_date_range,
    reformulated,
    usable,
)
from wayline.tool_registry.web.searches.source_categories import SITES, SourceCategory

TODAY = date(2026, 3, 31)


EXPECTED = {
    "encyclopedia": {"wikipedia.org", "britannica.com"},
    "programming": {"stackoverflow.com", "github.com", "developer.mozilla.org"},
    "academic": {"arxiv.org", "scholar.google.com", "ncbi.nlm.nih.gov"},
    "government": {"*.gov", "who.int", "un.org"},
    "finance": {"reuters.com", "bloomberg.com", "sec.gov"},
    "tech": {"techcrunch.com", "arstechnica.com", "wired.com"},
    "reference": {"wikipedia.org", "britannica.com", "merriam-webster.com"},
}
"""What users of each category count on; those of the other categories are ours to choose."""


def test_every_category_has_its_sites():
    assert set(SITES) == set(get_args(SourceCategory))
    assert all(SITES.values())
    assert {category: set(SITES[category]) for category in EXPECTED} == EXPECTED


def test_wishes_are_added_to_the_words_once():
    request = SearchRequest("tides in Brest", target_info=("height", "Tides in Brest", "spring tide"))

    assert request.words == "tides in Brest height spring tide"


def test_sites_are_asked_for_as_search_engines_take_them():
    request = SearchRequest("flu", category="government")

    assert request.words_with_sites == "flu (site:gov OR site:who.int OR site:un.org)"


@pytest.mark.parametrize("query", ["word " * 200, "x" * 1_000])
def test_a_long_query_is_cut_to_what_providers_take(query: str):
    sent = SearchRequest(query, category="health", target_info=("more",)).words_with_sites

    assert len(sent) <= 400
    assert len(sent.split()) <= 50
    assert sent.endswith("site:mayoclinic.org)")


def test_a_wider_search_has_no_quotes_sites_or_wishes():
    request = SearchRequest('"exact words" site:a.example more', "image", "news", ("wish",))

    assert reformulated(request) == SearchRequest("exact words more", "image")


def test_a_search_with_dates_alone_is_widened_to_any_time():
    dates = read_date_range("day", today=TODAY)

    assert reformulated(SearchRequest("plain words", dates=dates)) == SearchRequest("plain words")
    assert reformulated(SearchRequest('"words"', dates=dates)) == SearchRequest("words", dates=dates)


@pytest.mark.parametrize(
    ("text", "day", "held"),
    [
        ("day", "2026-04-01", True),
        ("day", "2026-04-02", False),
        ("day", "2026-03-29", True),
        ("day", "2026-03-28", False),
        ("0001-01-01..9999-12-31", "9999-12-31", True),
    ],
)
def test_a_date_of_another_time_zone_is_in_the_range(text: str, day: str, held: bool):
    assert read_date_range(text, today=TODAY).may_hold(date.fromisoformat(day)) is held


def test_a_plain_search_has_no_wider_one():
    assert reformulated(SearchRequest("plain words")) is None
    assert reformulated(SearchRequest("site:a.example")) is None


@pytest.mark.parametrize(
    ("text", "first", "covered_by"),
    [
        ("day", "2026-03-30", "day"),
        ("year", "2025-03-30", "year"),
        ("2026-03-28..2026-03-29", "2026-03-28", "week"),
        ("2026-01-01..2026-01-31", "2026-01-01", "year"),
        ("2020-01-01..2020-12-31", "2020-01-01", None),
    ],
)
def test_a_range_of_dates_is_read(text: str, first: str, covered_by: str | None):
    dates = read_date_range(text, today=TODAY)

    assert (dates.first.isoformat(), dates.covered_by(TODAY)) == (first, covered_by)


@pytest.mark.parametrize("text", ["soon", "2026-02-30..2026-03-01", "2026-03-02..2026-03-01", "2026-03-01"])
def test_what_is_no_range_is_refused(text: str):
    with pytest.raises(ValueError, match="range|before it begins"):
        read_date_range(text, today=TODAY)


def test_doubles_other_schemes_and_other_times_are_left_out():
    dates = read_date_range("2026-03-01..2026-03-31", today=TODAY)
    hits = [
        SearchHit("a", "https://a.example/x"),
        SearchHit("a again", "https://a.example/x/"),
        SearchHit("script", "javascript:alert(1)"),
        SearchHit("old", "https://old.example", published=date(2025, 1, 1)),
        SearchHit("new", "https://new.example", published=date(2026, 3, 5)),
        SearchHit("more", "https://more.example"),
    ]

    assert [hit.title for hit in usable(hits, dates, limit=2)] == ["a", "new"]


@pytest.mark.parametrize(
    "url",
    [
        "http://[foo",
        "http://exa\u2100mple.com/",
        "//a.example",
        "data:image/png;base64,AA",
        "",
        "http://",
        "http:///x",
        "https://a.example/\ud800",
        "https://a.example/\x1b[31m",
    ],
)
def test_what_is_no_web_address_is_no_hit_and_no_image(url: str):
    hits = [SearchHit("wrong", url), SearchHit("right", "https://a.example", image_url=url)]

    assert usable(hits, None, limit=5) == [SearchHit("right", "https://a.example")]
