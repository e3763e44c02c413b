"""How hard a task looks from its text alone: no model is asked, and no network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import exp
from typing import Any, Literal, Self

from wayline.contracts.jobs import Complexity
from wayline.router.complexity import features

__all__ = ["Boundary", "Classifier", "assess", "bundled"]

SCORE_DIGITS = 3
SPREAD_MAX = 4.0

Boundary = Literal["moderate", "complex"]
"""The levels that begin at a score: what is below all of them is simple."""


@dataclass(frozen=True)
class Classifier:
    """What the words and the numbers of a text weigh; all of it is data."""

    lexicons: features.Lexicons
    phrases: features.Phrases
    weights: Mapping[str, float]
    means: Mapping[str, float]
    deviations: Mapping[str, float]
    grams: Sequence[int]
    gram_bits: int
    centre: float
    width: float
    levels: Mapping[str, float]
    reasoning_min: float
    signs: re.Pattern[str]

    @classmethod
    def of(cls, kept: Mapping[str, Any], trained: Mapping[str, Any]) -> Self:
        """From what is kept by hand and what was trained."""
        return cls(
            lexicons=features.lexicon(kept["lexicons"]),
            phrases={name: features.any_of(phrases) for name, phrases in kept["phrases"].items()},
            weights=kept["weights"],
            means=trained["means"],
            deviations=trained["deviations"],
            grams=trained["grams"],
            gram_bits=trained["gram_bits"],
            centre=trained["centre"],
            width=trained["width"],
            levels=kept["levels"],
            reasoning_min=kept["reasoning"]["score_min"],
            signs=features.any_of(sign for signs in kept["reasoning"]["signs"].values() for sign in signs),
        )

    def adjusted(
        self,
        *,
        levels: Mapping[Boundary, float] | None,
        reasoning_min: float | None,
        weights: Mapping[str, float] | None,
    ) -> Self:
        """The same with some of it said otherwise."""
        return replace(
            self,
            levels={**self.levels, **(levels or {})},
            weights={**self.weights, **(weights or {})},
            reasoning_min=self.reasoning_min if reasoning_min is None else reasoning_min,
        )

    def counted(self, text: str) -> dict[str, float]:
        """Every feature that a text has."""
        read = features.excerpt(text)
        words = features.words_of(read)
        found = features.count(read, words, self.lexicons, self.phrases)
        found["grams"] = features.gram_sum(features.grams(words, self.gram_bits), self.grams)
        return found

    def spread(self, name: str, value: float) -> float:
        """How far a feature is from what is usual, in deviations; no single one decides alone."""
        off = (value - self.means.get(name, 0.0)) / self.deviations.get(name, 1.0)
        return min(max(off, -SPREAD_MAX), SPREAD_MAX)

    def total(self, found: Mapping[str, float]) -> float:
        """Every feature times its weight, added up."""
        return sum(weight * self.spread(name, found.get(name, 0.0)) for name, weight in self.weights.items())

    def assess(self, text: str) -> Complexity:
        """Score, level, and whether it needs reasoning."""
        score = round(1 / (1 + exp((self.centre - self.total(self.counted(text))) / self.width)), SCORE_DIGITS)
        return Complexity(
            score=score,
            level="complex" if score >= self.levels["complex"] else self._lower(score),
            needs_reasoning=score >= self.reasoning_min and bool(self.signs.search(features.excerpt(text))),
        )

    def _lower(self, score: float) -> Any:
        return "moderate" if score >= self.levels["moderate"] else "simple"


@cache
def bundled() -> Classifier:
    """The one this package brings along."""
    here = files(__name__)
    kept, trained = (json.loads(here.joinpath(name).read_text()) for name in ("lexicons.json", "weights.json"))
    return Classifier.of(kept, trained)


def assess(text: str) -> Complexity:
    """How hard a task looks: a score from 0 to 1, its level, and whether it needs reasoning."""
    return bundled().assess(text)
