"""Words that the end of a line has cut in two are whole."""

from __future__ import annotations

import pytest

from wayline.documents.formats.pdf_hyphens import joined


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("The arrange-\nment was con-  \n  cluded.", "The arrangement was concluded."),
        ("die Verbes-\nserung", "die Verbesserung"),
        ("soft\u00ad\nware and ty\u2010\npography", "software and typography"),
        ("It is state-of-the-\nart.", "It is state-of-the-art."),
        ("a well-\nknown rule, well-known", "a well-known rule, well-known"),
        ("Marie-\nAnne", "Marie-\nAnne"),
        ("Vor-\nund Nachteile, pre-\nand postwar", "Vor-\nund Nachteile, pre-\nand postwar"),
        ("B-\ncells, ISO-9001-\nnorm, x1-\ny", "B-\ncells, ISO-9001-\nnorm, x1-\ny"),
        ("https://a.example/b-\nc", "https://a.example/b-\nc"),
        ("- one\n- two", "- one\n- two"),
        ("one \u2013\ntwo, three -\nfour", "one \u2013\ntwo, three -\nfour"),
    ],
)
def test_words_cut_at_a_lines_end_are_joined(text: str, whole: str):
    assert joined([text]) == [whole]


def test_a_compound_of_another_page_keeps_its_hyphen():
    assert joined(["Long-term plans", "a long-\nterm lease"])[1] == "a long-term lease"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a" * 1_000_000, "ab-" * 300_000, "ab-\n" * 250_000, "-" * 1_000_000])
def test_long_texts_are_joined_in_linear_time(text: str):
    assert len(joined([text])[0]) <= len(text)
