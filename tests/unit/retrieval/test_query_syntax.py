"""Phrases, excluded words and beginnings are read from a query; everything else is words."""

from __future__ import annotations

import pytest

from wayline.retrieval.search.query_syntax import SYNTAX_WORDS_MAX, ParsedQuery, parse_query


@pytest.mark.parametrize(
    ("query", "parsed"),
    [
        ("plain words", ParsedQuery("plain words")),
        ('the "red fox" runs', ParsedQuery("the red fox runs", phrases=("red fox",))),
        ("the “red fox” runs", ParsedQuery("the red fox runs", phrases=("red fox",))),
        ("fox -grapes", ParsedQuery("fox", excluded=("grapes",))),
        ('fox -"sour grapes"', ParsedQuery("fox", excluded=("sour grapes",))),
        ("tortoi* race", ParsedQuery("tortoi race", beginnings=("tortoi",))),
        ("well-known INV-2024-001", ParsedQuery("well-known INV-2024-001")),
        ("--dry-run -5 - x", ParsedQuery("--dry-run -5 - x")),
        ("-only", ParsedQuery("-only")),
        ('an "unclosed phrase', ParsedQuery('an "unclosed phrase')),
        ('""', ParsedQuery('""')),
        ("C* a*", ParsedQuery("C* a*")),
    ],
)
def test_a_query_is_read(query: str, parsed: ParsedQuery):
    assert parse_query(query) == parsed


def test_a_sentence_is_words_alone():
    text = "word " * (SYNTAX_WORDS_MAX - 1) + '"no" -never'

    assert parse_query(text) == ParsedQuery(text)
