"""Which facts are recalled, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from wayline.contracts.memory import NewFact
from wayline.retrieval.memory.fact_text import FactText
from wayline.retrieval.memory.plan_save import compares_meaning
from wayline.retrieval.memory.rank_facts import AskedTerm, Wanted, rank_facts

NOW = datetime(2026, 11, 27, tzinfo=UTC)
TEA, COFFEE, CELLO = "likes green tea", "likes black coffee", "plays the cello"


def row(text: str, **columns: Any) -> dict[str, Any]:
    words = FactText(text)
    named = {"fact_id": text, "category": "preference", "tier": "context", "importance": 5, "confidence": 0.8}
    counted = {"uses": 0, "times": 1, "last_said_at": NOW}
    return {**named, **counted, "terms": list(words.terms), "trigrams": list(words.trigrams)} | columns


def recalled(
    rows: list[dict[str, Any]],
    *asked: str,
    wanted: Wanted = Wanted(),  # noqa: B008
    cosines: list[list[float]] = [],  # noqa: B006
) -> list[str]:
    terms = [AskedTerm.of(text) for text in asked]
    found = rank_facts(rows, terms, wanted, meaning=1.0, cosine_min=0.1, cosines=cosines)
    return [one.row["fact_id"] for one in found]


def test_a_word_of_few_facts_counts_more_than_one_of_many():
    assert recalled([row(TEA), row(COFFEE), row(CELLO)], "likes coffee") == [COFFEE, TEA]


def test_a_misspelt_word_is_found_by_its_letters():
    assert recalled([row(TEA), row(CELLO)], "celo") == [CELLO]


def test_meaning_finds_what_has_no_word_in_common():
    rows = [row(TEA), row(CELLO), row(COFFEE)]

    assert recalled(rows, "music", cosines=[[0.05, 0.6, 0.0]]) == [CELLO]


def test_of_several_terms_the_best_fit_counts():
    assert recalled([row(TEA), row(CELLO), row(COFFEE)], "cello", "tea") == [TEA, CELLO]


def test_without_a_term_what_counts_most_is_first():
    rows = [row(TEA), row(COFFEE, tier="core"), row(CELLO, importance=9)]

    assert recalled(rows) == [COFFEE, CELLO, TEA]


def test_only_the_categories_and_tiers_that_are_meant_are_recalled():
    rows = [row(TEA, category="profile"), row(COFFEE, tier="core"), row(CELLO)]

    assert recalled(rows, wanted=Wanted(categories=("profile",))) == [TEA]
    assert recalled(rows, wanted=Wanted(tiers=("core",))) == [COFFEE]
    assert recalled(rows, wanted=Wanted(categories=())) == []


def test_what_is_always_meant_need_not_fit():
    rows = [row(TEA), row(COFFEE, tier="core"), row(CELLO)]
    wanted = Wanted(fit_min=0.9, always_tiers=("core",), always=(CELLO,))

    assert set(recalled(rows, "green", wanted=wanted)) == {COFFEE, CELLO}


def test_vectors_are_waited_for_only_where_keywords_are_equal():
    def fact(*keywords: str) -> NewFact:
        return NewFact(text=TEA, category="preference", keywords=keywords)

    assert not compares_meaning([fact(), fact()], [])
    assert not compares_meaning([fact("tea"), fact("coffee")], [])
    assert compares_meaning([fact("tea"), fact("Tea")], [])
