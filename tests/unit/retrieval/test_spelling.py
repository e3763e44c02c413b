"""Words one letter apart are told from others, and share what is left of them without a letter."""

from __future__ import annotations

import pytest

from wayline.retrieval.search.spelling import deletions, may_be_misspelt, one_letter_apart


@pytest.mark.parametrize(
    ("one", "other"),
    [("vinyard", "vineyard"), ("recieve", "receive"), ("hause", "house"), ("houses", "house"), ("ab", "ba")],
)
def test_one_letter_apart(one: str, other: str):
    assert one_letter_apart(one, other)
    assert one_letter_apart(other, one)
    assert set(deletions(one)) & set(deletions(other))


@pytest.mark.parametrize(("one", "other"), [("house", "house"), ("house", "mouses"), ("abcd", "badc"), ("a", "abc")])
def test_further_apart_or_the_same(one: str, other: str):
    assert not one_letter_apart(one, other)


def test_only_words_of_letters_are_misspelt():
    assert may_be_misspelt("vinyard")
    assert not any(map(may_be_misspelt, ["abc", "inv2024", "inv_1", "x" * 21, "ab cd"]))
