"""One of several texts that are nearly the same is kept."""

from __future__ import annotations

from wayline.retrieval.search.near_duplicates import fold_near_duplicates

FIRST = "The gateway takes a job, and the router chooses the model that it runs on, by rules and by budget. " * 3


def test_a_copy_is_folded_into_the_first():
    other = "A tortoise won the race against a hare that slept under a tree."

    assert fold_near_duplicates([FIRST, other, FIRST + " (copy)", FIRST.upper()]) == {0: [2, 3], 1: []}


def test_texts_with_common_words_are_kept():
    texts = ["alpha beta", "alpha gamma", "beta alpha", "", "?!"]

    assert fold_near_duplicates(texts) == {0: [], 1: [], 2: [], 3: [], 4: []}
