"""A new fact finds all that it may repeat or contradict by their keys, and few others."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wayline.retrieval.memory.compare_facts import conflict, says_the_same
from wayline.retrieval.memory.comparison_keys import comparison_keys, keys_to_compare
from wayline.retrieval.memory.fact_text import FactText

# Few words, so that facts are often alike.
WORDS = (
    "lives",
    "in",
    "Bonn",
    "Paris",
    "likes",
    "not",
    "never",
    "tea",
    "teas",
    "12",
    "13",
    "is",
    "never mind",
    "喜欢",
    "不",
)
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
KEYWORDS = st.lists(st.sampled_from(("Tea", "tea", "town")), max_size=2)
ABOUT = st.sampled_from((None, "home city", "Home city.", "drink"))
ALIKE = 0.95
"""A cosine of two texts that mean the same."""


@given(one=TEXTS, other=TEXTS, keywords=st.tuples(KEYWORDS, KEYWORDS), about=st.tuples(ABOUT, ABOUT))
def test_facts_alike_or_contrary_share_a_key(
    one: str, other: str, keywords: tuple[list[str], list[str]], about: tuple[str | None, str | None]
):
    stored, new = FactText(one), FactText(other)
    folded = (frozenset(map(str.casefold, keywords[0])), frozenset(map(str.casefold, keywords[1])))
    vectors = (np.array([1.0, 0.0]), np.array([ALIKE, 0.0]))

    alike = says_the_same(stored, new, keywords=folded, vectors=vectors)
    contrary = conflict(new, stored, about=(about[1], about[0])) is not None

    found = set(comparison_keys(stored, keywords=keywords[0], about=about[0])) & set(
        keys_to_compare(new, keywords=keywords[1], about=about[1])
    )
    assert found or not (alike or contrary)


def test_a_fact_is_not_compared_with_those_that_only_share_words():
    stored = [FactText(f"Keeps {number} bees near street {number}") for number in range(100)]

    wanted = set(keys_to_compare(FactText("Keeps hens near the old harbour")))

    assert [words.text for words in stored if wanted & set(comparison_keys(words))] == []
