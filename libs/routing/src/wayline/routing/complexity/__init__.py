"""How hard a task looks from its text alone: no model is asked, and no network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from math import exp, log1p
from typing import Any, Literal, Self

from wayline.contracts.jobs import Complexity
from wayline.routing.complexity import features
from wayline.routing.complexity.phrases import Phrases

__all__ = ["Boundary", "Classifier", "assess", "bundled"]

SCORE_DIGITS = 3
SPREAD_MAX = 4.0
REASONING = "reasoning"
"""What phrases are signs of that make a task one that needs reasoning. It weighs nothing."""
MANNER_MIN = 2
"""So many words about answering make a sentence one that says how to answer."""

Level = Literal["simple", "moderate", "complex"]
Boundary = Literal["moderate", "complex"]
"""Where a level begins: `moderate` at a score, `complex` at a content."""


@dataclass(frozen=True)
class Content:
    """What the words of a text weigh, whatever their number: of a text's length only its first words count."""

    weights: Mapping[str, float]
    words_max: int
    centre: float
    width: float

    @cached_property
    def signs(self) -> frozenset[str]:
        """Return the features that are signs of a task."""
        return frozenset(name for name, weight in self.weights.items() if weight > 0) - {"words", "grams", "steps"}


@dataclass(frozen=True)
class Classifier:
    """What the words and the numbers of a text weigh; all of it is data."""

    lexicons: features.Lexicons
    phrases: Phrases
    weights: Mapping[str, float]
    means: Mapping[str, float]
    deviations: Mapping[str, float]
    grams: Sequence[int]
    gram_bits: int
    centre: float
    width: float
    content: Content
    directions: re.Pattern[str]
    manner: frozenset[str]
    levels: Mapping[str, float]
    reasoning_min: float

    @classmethod
    def of(cls, kept: Mapping[str, Any], trained: Mapping[str, Any]) -> Self:
        """Build a classifier from what is kept by hand and what was trained."""
        return cls(
            lexicons=features.lexicon(kept["lexicons"]),
            phrases=Phrases.of(kept["phrases"] | {REASONING: chain(*kept["reasoning"]["signs"].values())}),
            weights=kept["weights"],
            means=trained["means"],
            deviations=trained["deviations"],
            grams=trained["grams"],
            gram_bits=trained["gram_bits"],
            centre=trained["centre"],
            width=trained["width"],
            content=Content(**kept["content"]),
            directions=features.beginning(kept["directions"]),
            manner=frozenset(kept["manner"].split()),
            levels=kept["levels"],
            reasoning_min=kept["reasoning"]["score_min"],
        )

    def adjusted(
        self,
        *,
        levels: Mapping[Boundary, float] | None,
        reasoning_min: float | None,
        weights: Mapping[str, float] | None,
    ) -> Self:
        """Return the same with some of it said otherwise."""
        return replace(
            self,
            levels={**self.levels, **(levels or {})},
            weights={**self.weights, **(weights or {})},
            reasoning_min=self.reasoning_min if reasoning_min is None else reasoning_min,
        )

    def counted(self, text: str) -> dict[str, float]:
        """Return every feature that a text has."""
        return self._counted(features.excerpt(text))

    def _counted(self, read: str) -> dict[str, float]:
        words = features.words_of(read)
        found = features.count(read, words, self.lexicons, self.phrases)
        found["grams"] = features.gram_sum(features.grams(words, self.gram_bits), self.grams)
        return found

    def spread(self, name: str, value: float) -> float:
        """Return how far a feature is from what is usual, in deviations; no single one decides alone."""
        off = (value - self.means.get(name, 0.0)) / self.deviations.get(name, 1.0)
        return min(max(off, -SPREAD_MAX), SPREAD_MAX)

    def total(self, found: Mapping[str, float]) -> float:
        """Return every feature times its weight, added up."""
        return self._weighed(self.weights, found)

    @cached_property
    def _absent(self) -> Mapping[str, float]:
        """Return how far each feature is from what is usual where a text does not have it: most texts have few."""
        return {name: self.spread(name, 0.0) for name in {*self.weights, *self.content.weights}}

    def _weighed(self, weights: Mapping[str, float], found: Mapping[str, float]) -> float:
        absent = self._absent
        return sum(
            [
                weight * (self.spread(name, found[name]) if name in found else absent[name])
                for name, weight in weights.items()
            ]
        )

    def content_of(self, found: Mapping[str, float]) -> float:
        """Rate how demanding the words are, from 0 to 1: by what they are about, and by how many there are."""
        content = self.content
        capped = {**found, "words": min(found.get("words", 0.0), log1p(content.words_max))}
        return _share(self._weighed(content.weights, capped), content.centre, content.width)

    def asked(self, text: str) -> str:
        """Return what is asked in a text, without a preamble that says how to answer."""
        return features.asked(features.excerpt(text), directs=self._directs, signs=self._signs_of_a_task)

    def _directs(self, sentence: str) -> bool:
        """Return whether a sentence says how to answer: it begins so, or has several words about answering."""
        if self.directions.match(sentence.lower()):
            return True
        whole = sentence.rstrip().endswith((".", "!", ":")) and not features.of_a_task(sentence)
        return whole and sum(word in self.manner for word in features.words_of(sentence)) >= MANNER_MIN

    def _signs_of_a_task(self, sentence: str) -> int:
        signs = self.content.signs
        by_word = sum(not signs.isdisjoint(self.lexicons.get(word, ())) for word in features.words_of(sentence))
        return by_word + sum(n for name, n in self.phrases.count(sentence.lower()).items() if name in signs)

    def assess(self, text: str) -> Complexity:
        """Return score, content, level, and whether it needs reasoning, of what is asked in a text.

        A long text is not simple, and is not complex for its length: that takes demanding content.
        """
        found = self._counted(self.asked(text))
        score, content = _share(self.total(found), self.centre, self.width), self.content_of(found)
        if content >= self.levels["complex"]:
            level: Level = "complex"
        else:
            level = "moderate" if score >= self.levels["moderate"] else "simple"
        return Complexity(
            score=score,
            content=content,
            level=level,
            needs_reasoning=score >= self.reasoning_min and REASONING in found,
        )


def _share(total: float, centre: float, width: float) -> float:
    return round(1 / (1 + exp((centre - total) / width)), SCORE_DIGITS)


@cache
def bundled() -> Classifier:
    """Return the one this package brings along."""
    here = files(__name__)
    kept, trained = (json.loads(here.joinpath(name).read_text()) for name in ("lexicons.json", "weights.json"))
    return Classifier.of(kept, trained)


def assess(text: str) -> Complexity:
    """Return how hard a task looks: a score from 0 to 1, its level, and whether it needs reasoning."""
    return bundled().assess(text)
