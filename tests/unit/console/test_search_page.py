"""Searching: what the form asks, and why each hit was found."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.console.pages.form_values import WrongField
from wayline.console.pages.frame import Frame
from wayline.console.pages.knowledge.search import MODES, TEMPLATE, TYPED, Search, body_of, found_of
from wayline.console.render.environment import Templates
from wayline.contracts.knowledge import Degraded, Hit, SearchResult

ME = {"tenant": "acme", "name": "ann", "scopes": ["read"], "open": False, "version": "1", "user_id": None}
FRAME = Frame("Search", "/knowledge", ME, "token", "system", "/knowledge/search", now=datetime(2026, 5, 1, tzinfo=UTC))
PAYLOAD = '"><script>alert(1)</script><svg onload=alert(2)>\u202e'
SWITCHED_OFF = {"join": "", "all": "", "plain": ""}


def hit_of(**fields: Any) -> dict[str, Any]:
    usual = {"chunk_id": "d1#1", "document_id": "d/1", "document": "tides.md", "text": "The moon.", "score": 0.5}
    return Hit(**{**usual, **fields}).model_dump(mode="json")


def page_of(*hits: dict[str, Any], query: str = "moon", **result: Any) -> str:
    told = SearchResult(hits=(), mode="hybrid", **result).model_dump(mode="json")
    page = Search(query, {**TYPED, **SWITCHED_OFF}, told, found_of(list(hits)))
    return Templates().render(TEMPLATE, page=page, frame=FRAME, modes=MODES).decode()


def test_a_query_alone_leaves_the_rest_to_the_api():
    assert body_of("moon", TYPED) == {
        "query": "moon",
        "mode": "hybrid",
        "top_k": 10,
        "filter": {},
        "join_neighbours": False,
        "fold_duplicates": True,
    }


def test_every_field_of_the_form_is_asked():
    typed = {
        "mode": "vector", "weight": "0.25", "count": "3", "least": "0.1", "collections": "a\r\nb",
        "audience": "ann", "where": '{"year": {"gte": 2020}, "kind": "x"}', "join": "on", "all": "on", "plain": "on",
    }  # fmt: skip

    assert body_of("moon", typed) == {
        "query": "moon",
        "mode": "vector",
        "top_k": 3,
        "vector_weight": 0.25,
        "min_score": 0.1,
        "audience": ["ann"],
        "filter": {"collections": ["a", "b"], "where": {"year": {"gte": 2020}, "kind": {"equals": "x"}}},
        "syntax": "plain",
        "join_neighbours": True,
        "fold_duplicates": False,
    }


@pytest.mark.parametrize("typed", [{"weight": "half"}, {"where": "["}, {"count": "ten"}], ids=str)
def test_a_condition_that_cannot_be_read_is_refused(typed: dict[str, str]):
    with pytest.raises(WrongField):
        body_of("moon", {**TYPED, **typed})


def test_bars_show_scores_as_shares_of_what_each_can_be():
    words = {"keyword": {"rank": 2, "score": 6.0}, "covered": 0.5}
    both = {"keyword": {"rank": 1, "score": 12.0}, "vector": {"rank": 4, "score": 0.25}, "duplicates": ["x"]}
    first, second = found_of([hit_of(score=0.8, why=both), hit_of(score=1.2, why=words)])

    assert [(leg.title, leg.rank, leg.bar) for leg in first.legs] == [("words", 1, 1_000), ("meaning", 4, 250)]
    assert [(leg.title, leg.bar) for leg in second.legs] == [("words", 500)]
    assert (first.bar, second.bar, first.duplicates, second.covered) == (800, 1_000, 1, 0.5)


def test_a_hit_says_why_it_was_found_and_where_it_stands():
    why = {"keyword": {"rank": 1, "score": 6.5}, "covered": 0.226, "joined": ["a", "b"]}
    html = page_of(hit_of(why=why, metadata={"headings": ["Sea", "Tides"], "page": 3}, untrusted=True))

    assert "covers 23 %" in html and "rank 1" in html and "6.500" in html and "of 2 passages" in html
    assert "page 3" in html and "words of strangers" in html and 'href="/knowledge/document?id=d%2F1"' in html


def test_a_degraded_search_says_what_was_left_out():
    lost = Degraded(leg="vectors", reason="provider", detail="the provider is away")
    html = page_of(degraded=(lost,), note="no passage has the phrase", corrected={"mooon": ("moon",)})

    assert "Meaning left out in part" in html and "the provider is away" in html
    assert "no passage has the phrase" in html and "No passage has mooon" in html and "Nothing found" in html


def test_strangers_words_in_a_hit_stay_words():
    said = {"document": PAYLOAD, "text": PAYLOAD, "collection": PAYLOAD}
    hits = [hit_of(metadata={"headings": told, "page": told}, **said) for told in ([PAYLOAD], PAYLOAD, 7, None)]
    html = page_of(*hits, query=PAYLOAD, corrected={PAYLOAD: (PAYLOAD,)}, note=PAYLOAD)

    assert "<script>alert" not in html and "<svg onload" not in html
    assert html.count("\u202e") == 1, "the query stands in its own field as it was typed"
