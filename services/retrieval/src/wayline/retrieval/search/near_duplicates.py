"""Fold passages of nearly the same text into one, so that copies of a document do not fill an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

SHINGLE_WORDS = 3
SAME_MIN = 0.85
"""The share of their word triples that two texts have in common from which on one stands for both."""

_WORD = re.compile(r"\w+")


def fold_near_duplicates(texts: Sequence[str]) -> dict[int, list[int]]:
    """Return the places of the texts that are kept, in order, each with those of the later texts that it stands for."""
    kept: dict[int, list[int]] = {}
    held: dict[int, set[tuple[str, ...]]] = {}
    for at, text in enumerate(texts):
        shingles = _shingles(text)
        twin = _twin(shingles, held)
        if twin is not None:
            kept[twin].append(at)
            continue
        kept[at], held[at] = [], shingles
    return kept


def _twin(shingles: set[tuple[str, ...]], held: dict[int, set[tuple[str, ...]]]) -> int | None:
    """Return the place of the text that has most in common with one, if that is enough."""
    best, most = None, 0
    for place, others in held.items():
        few, many = sorted((len(shingles), len(others)))
        if few < SAME_MIN * many:
            continue
        both = len(shingles & others)
        if both > most and both >= SAME_MIN * (few + many - both):
            best, most = place, both
    return best


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    if len(words) < SHINGLE_WORDS:
        return {tuple(words) or (text,)}
    return set(zip(*(words[at:] for at in range(SHINGLE_WORDS)), strict=False))
