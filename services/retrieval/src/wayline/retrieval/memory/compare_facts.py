"""Whether two facts say the same or contradict each other, and whether a user's words stand behind one. Pure."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from wayline.retrieval.memory.fact_text import FactText

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAME_COSINE_MIN = 0.92
"""Of two texts that say the same in other words, where their keywords are equal too."""
OPPOSITE_OVERLAP_MIN = 0.75
"""The share of their words that two facts have in common of which one denies the other."""
SUPPORT_SHARE = 1 / 3
"""Of a fact's words those that must stand in its quote."""
QUOTE_TERMS_MIN = 1
QUOTE_CHARS_MIN = 4
_NAME = re.compile(r"(?<=[\w,] )[A-ZÀ-ÖØ-ÞА-Я][\w-]+")
_LATIN = re.compile(r"[a-zà-öø-ÿ]", re.IGNORECASE)


def says_the_same(
    one: FactText,
    other: FactText,
    *,
    keywords: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset()),
    vectors: tuple[NDArray | None, NDArray | None] = (None, None),
) -> bool:
    """Return whether two facts are one: by their hash, their words, or by meaning and the same keywords."""
    if one.text_hash == other.text_hash:
        return True
    if one.negated != other.negated or one.numbers != other.numbers:
        return False
    if one.claims and one.claims == other.claims:
        return True
    if not keywords[0] or keywords[0] != keywords[1] or names_in(one) != names_in(other):
        return False
    return _cosine(*vectors) >= SAME_COSINE_MIN


def conflict(one: FactText, other: FactText, *, about: tuple[str | None, str | None] = (None, None)) -> str | None:
    """Return why two facts that are not the same cannot both be true; None: they may."""
    slots = tuple(one_value_of(words, given) for given, words in zip(about, (one, other), strict=True))
    if slots[0] is not None and slots[0] == slots[1] and one.claims != other.claims:
        return f"another value of {slots[0]}"
    if one.negated != other.negated and _overlap(one, other) >= OPPOSITE_OVERLAP_MIN:
        return "the opposite"
    return None


def one_value_of(words: FactText, about: str | None) -> str | None:
    """Return what a fact is the one value of, as it is given or as its words tell."""
    return (FactText(about).plain if about else None) or words.slot


def supports(quote: str, fact: FactText) -> bool:
    """Return whether a user's words can be what a fact says: its numbers, names and enough of its words stand in them.

    Where a quote is in another script than the fact, the words cannot be compared, and the numbers alone decide.
    """
    said = FactText(quote)
    if len(said.plain) < QUOTE_CHARS_MIN or len(said.terms) < QUOTE_TERMS_MIN:
        return False
    if not set(fact.numbers) <= set(said.numbers):
        return False
    if bool(_LATIN.search(said.plain)) != bool(_LATIN.search(fact.plain)):
        return True
    if not all(FactText(name).plain in said.plain for name in names_in(fact)):
        return False
    if fact.negated != said.negated and len(said.claims) <= 2 * len(fact.claims):
        return False
    needed = max(1, math.ceil(len(fact.claims) * SUPPORT_SHARE))
    return len(fact.claims & said.claims) >= needed


def _overlap(one: FactText, other: FactText) -> float:
    together = one.claims | other.claims
    return len(one.claims & other.claims) / len(together) if together else 0.0


def names_in(words: FactText) -> frozenset[str]:
    """Return the names in a fact: its words with a capital that are not its first."""
    return frozenset(name.casefold() for name in _NAME.findall(words.text))


def _cosine(one: NDArray | None, other: NDArray | None) -> float:
    if one is None or other is None or one.shape != other.shape:
        return 0.0
    return float(one @ other)
