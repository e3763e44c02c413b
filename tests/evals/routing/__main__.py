"""How well the router tells which prompts need the strong model, beside what anybody could do.

    python -m tests.evals.routing [--json]

APGR / CPT50 / CPT80 of each part, on subjects (of GSM8K: problems) that were not learned from; mean of three seeds.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from wayline.routing.complexity import Classifier, assess, features

from .data import FOLDS, HERE, SEEDS, Answered, Recovered, load_or_exit, recovered, splits
from .linear import Sparse, logistic
from .train import counted_of, gram_rows, kept, train

Array = np.ndarray
Measured = dict[str, dict[str, Recovered]]
"""By way of telling, and part."""
Score = Callable[[Array, Array], Array]
"""Scores of the test rows, learned from the training rows."""

OURS = "ours"
ONE_REGEX = re.compile(
    r"\b(prove|derive|why|explain|calculate|compare|analy[sz]e|design|debug|algorithm|integral|equation)\b", re.I
)
SMALL = ("moral_scenarios", "professional_law")
"""A third of the MMLU prompts are of these two subjects; without them the figure says more about others."""


def cross_validated(data: Answered, score: Score) -> dict[str, Recovered]:
    """Every row is scored by a model that has not seen its subject."""
    parts = {
        "MMLU": data.part == "mmlu",
        "MMLU, 26 small": (data.part == "mmlu") & ~np.isin(data.subject, SMALL),
        "GSM8K": data.part == "gsm8k",
    }
    found: dict[str, list[Recovered]] = {name: [] for name in parts}
    for seed in SEEDS:
        scores = np.zeros(len(data.prompts))
        for learn, test in splits(data, seed):
            scores[test] = score(learn, test)
        for name, rows in parts.items():
            found[name].append(recovered(scores[rows], data.gain[rows]))
    return {name: _mean(several) for name, several in found.items()}


def _mean(several: list[Recovered]) -> Recovered:
    return Recovered(*(statistics.fmean(getattr(one, field) for one in several) for field in vars(several[0])))


def ours(data: Answered) -> Score:
    by_hand, rows = kept(), gram_rows(data)
    counted = counted_of(data, by_hand)

    def score(learn: Array, test: Array) -> Array:
        learned = train(data.where(learn), rows.where(learn), [counted[i] for i in np.flatnonzero(learn)])
        classifier = Classifier.of(by_hand, learned | {"centre": 0.0, "width": 1.0})
        grams = rows.where(test).times(np.array(learned["grams"]))
        found = (counted[i] | {"grams": grams[n]} for n, i in enumerate(np.flatnonzero(test)))
        return np.array([classifier.total(one) for one in found])

    return score


def words_and_logistic(data: Answered) -> Score:
    """TF-IDF with a logistic regression on whether the strong model helps."""
    texts = [Counter(features.words_of(text)) for text in data.prompts]

    def score(learn: Array, test: Array) -> Array:
        seen = Counter(word for i in np.flatnonzero(learn) for word in texts[i])
        columns = {word: i for i, word in enumerate(word for word, n in seen.items() if n > 1)}
        rarity = {word: np.log((1 + learn.sum()) / (1 + seen[word])) + 1 for word in columns}
        rows = []
        for words in texts:
            row = {columns[word]: n * rarity[word] for word, n in words.items() if word in columns}
            length = sum(value**2 for value in row.values()) ** 0.5 or 1.0
            rows.append({column: value / length for column, value in row.items()})
        matrix = Sparse(rows, len(columns))
        weights = logistic(matrix.where(learn), (data.gain[learn] > 0).astype(float), 1.0)
        return matrix.where(test).times(weights)

    return score


def of_text(data: Answered, value: Callable[[str], float]) -> Score:
    column = np.array([value(text) for text in data.prompts])
    return lambda _, test: column[test]


def decision_ms(data: Answered) -> tuple[float, float]:
    """Median and 99th percentile of one judgement."""
    spent = []
    for text in data.prompts[::4]:
        began = time.perf_counter()
        assess(text)
        spent.append((time.perf_counter() - began) * 1_000)
    return statistics.median(spent), float(np.percentile(spent, 99))


def measure(data: Answered) -> Measured:
    """Every way of telling, measured alike."""
    chance = np.random.default_rng(0).random(len(data.prompts))
    ways: dict[str, Score] = {
        "random": lambda _, test: chance[test],
        "prompt length": of_text(data, len),
        "one regex": of_text(data, lambda text: len(ONE_REGEX.findall(text))),
        "TF-IDF + logistic": words_and_logistic(data),
        OURS: ours(data),
    }
    return {name: cross_validated(data, score) for name, score in ways.items()}


def table(measured: Measured, data: Answered) -> str:
    median, slow = decision_ms(data)
    return "\n".join(
        [
            f"routing: APGR / CPT50 / CPT80, {FOLDS} folds by subject, {len(data.prompts)} prompts",
            *(
                f"  {name:18s}" + "".join(f"  {part} {value}" for part, value in parts.items())
                for name, parts in measured.items()
            ),
            f"a judgement: median {median:.2f} ms, p99 {slow:.2f} ms",
            "our own prompts, least … median … most",
            *levels(),
        ]
    )


def levels() -> Iterator[str]:
    """Our own prompts: the scale was set on them, so this shows the scale and not a merit."""
    prompts = json.loads((HERE / "prompts.json").read_text())
    for level in ("simple", "moderate", "complex"):
        seen = [assess(text) for text in prompts[level]]
        scores = [one.score for one in seen]
        right = sum(one.level == level for one in seen)
        thinking = sum(one.needs_reasoning for one in seen)
        yield (
            f"  {level:10s} {min(scores):.2f} … {statistics.median(scores):.2f} … {max(scores):.2f}; "
            f"{right} of {len(seen)} in their level, {thinking} need reasoning"
        )


def main() -> None:
    data = load_or_exit()
    measured = measure(data)
    if "--json" in sys.argv:
        print(
            json.dumps({name: {part: vars(value) for part, value in each.items()} for name, each in measured.items()})
        )
    else:
        print(table(measured, data))


if __name__ == "__main__":
    main()
