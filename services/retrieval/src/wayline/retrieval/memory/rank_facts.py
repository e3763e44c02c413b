"""Which facts of one owner fit what is asked, best first: by words, by spelling and by meaning. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from wayline.retrieval.memory.fact_text import FactText
from wayline.store import Record

SPELLED_TERMS_MAX = 40
"""Words of a search term whose spelling counts: in a long text some word is spelt as the facts are."""
LETTERS_WEIGHT = 0.2
"""Of spelling beside words. Measured on conversations."""
LETTERS_MIN = 0.4
"""What is found by its spelling alone holds so much of a term's groups of three letters."""
_TIER_PLACE = {"core": 3, "important": 2}

Row: TypeAlias = Mapping[str, Any] | Record
"""A fact with its `terms` and `trigrams`."""


class AskedTerm(NamedTuple):
    """What is compared of a search term."""

    words: frozenset[str]
    trigrams: frozenset[str]

    @classmethod
    def of(cls, text: str) -> AskedTerm:
        words = FactText(text)
        return cls(words.terms, words.trigrams if len(words.terms) <= SPELLED_TERMS_MAX else frozenset())


class Fit(NamedTuple):
    """How well a fact fits what is asked, 0..1, and by which ways; of several terms the best counts."""

    fit: float = 0.0
    semantic: float = 0.0
    keyword: float = 0.0
    fuzzy: float = 0.0


class Found(NamedTuple):
    """A fact that is recalled."""

    row: Row
    fit: Fit


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which facts are recalled."""

    categories: Collection[str] | None = None
    tiers: Collection[str] | None = None
    fit_min: float = 0.0
    always_tiers: Collection[str] = ()
    """Recalled whether they fit or not; so are the facts in `always`."""
    always: Collection[str] = ()

    def is_of(self, row: Row) -> bool:
        """Return whether a fact is of a category and tier that is meant."""
        return (self.categories is None or row["category"] in self.categories) and (
            self.tiers is None or row["tier"] in self.tiers
        )

    def takes(self, found: Found) -> bool:
        """Return whether a fact fits well enough, or is recalled whether it fits or not."""
        row, fit = found
        if row["tier"] in self.always_tiers or row["fact_id"] in self.always:
            return True
        return (fit.keyword > 0 or fit.fuzzy >= LETTERS_MIN or fit.semantic > 0) and fit.fit >= self.fit_min


def rank_facts(
    rows: Sequence[Row],
    asked: Sequence[AskedTerm],
    wanted: Wanted,
    *,
    meaning: float,
    cosine_min: float,
    cosines: Sequence[Sequence[float]],
) -> list[Found]:
    """Return the facts of an owner that are recalled, best first.

    `meaning`: what a cosine is worth beside words. `cosines`: of each asked term with each fact, or none at all.
    """
    by_meaning = [[cosine if cosine >= cosine_min else 0.0 for cosine in of_term] for of_term in cosines]
    fits = _fits(rows, asked, meaning, by_meaning or [[0.0] * len(rows)] * len(asked))
    found = [Found(row, fit) for row, fit in zip(rows, fits, strict=True) if wanted.is_of(row)]
    if asked:
        found = [one for one in found if wanted.takes(one)]
    return sorted(found, key=_place)


def _fits(
    rows: Sequence[Row], asked: Sequence[AskedTerm], meaning: float, by_meaning: Sequence[Sequence[float]]
) -> list[Fit]:
    best = [Fit()] * len(rows)
    for term, semantic in zip(asked, by_meaning, strict=True):
        by_words = _shares(term.words, [row["terms"] for row in rows])
        by_letters = _shares(term.trigrams, [row["trigrams"] for row in rows])
        for at in range(len(rows)):
            fit = by_words[at] + LETTERS_WEIGHT * by_letters[at] + meaning * semantic[at]
            this = Fit(fit / (1 + LETTERS_WEIGHT + meaning), semantic[at], by_words[at], by_letters[at])
            best[at] = Fit(*map(max, best[at], this))
    return best


def _shares(asked: frozenset[str], held: Sequence[Sequence[str]]) -> list[float]:
    """Return how much of what is asked each fact holds; what is in few of the owner's facts says more."""
    hits = [asked.intersection(one) for one in held]
    holding = Counter(word for hit in hits for word in hit)
    weights = {word: math.log(1 + (len(held) - holding[word] + 0.5) / (holding[word] + 0.5)) for word in asked}
    total = sum(weights.values())
    return [sum(weights[word] for word in hit) / total if hit else 0.0 for hit in hits]


def _place(found: Found) -> tuple[Any, ...]:
    """Return what a fact is sorted by: the best fit first, then what counts most."""
    row, fit = found
    worth = row["confidence"] * (1 + math.log(row["uses"] + row["times"]))
    return (
        *(-fit.fit, -_TIER_PLACE.get(row["tier"], 1), -row["importance"], -worth),
        *(-row["last_said_at"].timestamp(), row["fact_id"]),
    )
