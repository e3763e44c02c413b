"""Fold passages of nearly the same text into one, so that copies of a document do not fill an answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

SHINGLE_WORDS = 3
SAME_MIN = 0.85
"""The share of their word triples that two texts have in common from which on one stands for both."""

_WORD = re.compile(r"\w+")


def fold_near_duplicates(texts: Sequence[str]) -> dict[int, list[int]]:
    """Return the places of the texts that are kept, in order, each with those of the later texts that it stands for."""
    kept: dict[int, list[int]] = {}
    sizes: dict[int, int] = {}
    holders: dict[int, list[int]] = {}
    for at, text in enumerate(texts):
        shingles = _shingles(text)
        shared = Counter(place for shingle in shingles for place in holders.get(shingle, ()))
        twin = next(
            (
                place
                for place, both in shared.most_common(1)
                if both >= SAME_MIN * (len(shingles) + sizes[place] - both)
            ),
            None,
        )
        if twin is not None:
            kept[twin].append(at)
            continue
        kept[at] = []
        sizes[at] = len(shingles)
        for shingle in shingles:
            holders.setdefault(shingle, []).append(at)
    return kept


def _shingles(text: str) -> set[int]:
    words = _WORD.findall(text.lower())
    count = max(1, len(words) - SHINGLE_WORDS + 1)
    return {hash(tuple(words[at : at + SHINGLE_WORDS])) for at in range(count)} if words else {hash(text)}
