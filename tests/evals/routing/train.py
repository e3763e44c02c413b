"""Write the weights of the router's complexity classifier.

    python -m tests.evals.routing.train

Learned from which prompts a weak model fails and a strong one does not: hashed words, and how the features are spread.
The weights of the features are equal or set by hand: fitted to 28 subjects they did worse on the 29th.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import log
from pathlib import Path
from typing import Any

import numpy as np

from wayline.routing.complexity import Classifier, features

from ..shared import REPOSITORY
from .data import HERE, Answered, load_or_exit, splits
from .linear import Sparse, ridge

PACKAGE = REPOSITORY / "libs/routing/src/wayline/routing/complexity"
GRAM_BITS = 13
STRENGTH = 3.0
SPREAD = ("words", "sentences", "negation", "condition", "quantity", "comparison", "connective", "numbers")
"""Features that nearly every text has; the others are zero for most, and count from there."""
GRAM_MAX = 127
WANTED = {"simple": 0.2, "moderate": 0.5, "complex": 0.8}
"""Where the score of our own prompts should be."""

Array = np.ndarray


def kept() -> dict[str, Any]:
    return json.loads((PACKAGE / "lexicons.json").read_text())


def gram_rows(data: Answered) -> Sparse:
    empty = blank(kept())
    found = (features.grams(features.words_of(empty.asked(text)), GRAM_BITS) for text in data.prompts)
    return Sparse([dict.fromkeys(row, features.gram_share(len(row))) for row in found], 1 << GRAM_BITS)


def importance(data: Answered) -> Array:
    """A subject with ten times the questions weighs three times as much."""
    sizes = {subject: int((data.subject == subject).sum()) for subject in set(data.subject)}
    weights = np.array([sizes[subject] ** -0.5 for subject in data.subject])
    return weights / weights.mean()


def gram_weights(data: Answered, rows: Sparse) -> Array:
    """What each hashed word adds to the gain of asking the strong model, compared within each part."""
    weighs, target = importance(data), data.gain.copy()
    for part in set(data.part):
        chosen = data.part == part
        target[chosen] -= np.average(target[chosen], weights=weighs[chosen])
    weights = ridge(rows, target, weighs, STRENGTH)
    return np.rint(weights * GRAM_MAX / np.abs(weights).max())


def blank(by_hand: Mapping[str, Any]) -> Classifier:
    """A classifier that has learned nothing."""
    nothing = {"means": {}, "deviations": {}, "grams": [0] * (1 << GRAM_BITS), "gram_bits": GRAM_BITS}
    return Classifier.of(by_hand, nothing | {"centre": 0.0, "width": 1.0})


def train(data: Answered, rows: Sparse, counted: list[dict[str, float]]) -> dict[str, Any]:
    """Everything learned; `counted` are the features of the prompts, unscaled."""
    columns = {name: np.array([found.get(name, 0.0) for found in counted]) for name in SPREAD}
    held_out = np.zeros(len(data.prompts))
    for learn, test in splits(data, 0):
        weights = gram_weights(data.where(learn), rows.where(learn))
        held_out[test] = rows.where(test).times(weights)
    return {
        # How far the hashed words move a text that they were not learned from; on their own texts they boast.
        "deviations": {"grams": float(held_out.std())} | {name: float(col.std()) for name, col in columns.items()},
        "means": {name: float(col.mean()) for name, col in columns.items()},
        "gram_bits": GRAM_BITS,
        "grams": [int(weight) for weight in gram_weights(data, rows)],
    }


def scaled(by_hand: Mapping[str, Any], learned: dict[str, Any]) -> dict[str, Any]:
    """With the centre and the width that bring our own prompts nearest to where they should be."""
    classifier = Classifier.of(by_hand, learned | {"centre": 0.0, "width": 1.0})
    prompts = json.loads((HERE / "prompts.json").read_text())
    sums = [
        (classifier.total(classifier.counted(text)), aim) for level, aim in WANTED.items() for text in prompts[level]
    ]
    weighed, wanted = np.array([s for s, _ in sums]), np.array([log(aim / (1 - aim)) for _, aim in sums])
    slope = float(np.cov(weighed, wanted)[0, 1] / weighed.var(ddof=1))
    return learned | {"width": 1 / slope, "centre": float(weighed.mean() - wanted.mean() / slope)}


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    return {name: rounded(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def written(learned: dict[str, Any]) -> str:
    """JSON with the long list folded to lines that a diff can show."""
    grams = learned["grams"]
    lines = ",\n    ".join(",".join(map(str, grams[i : i + 64])) for i in range(0, len(grams), 64))
    head = json.dumps({name: rounded(value) for name, value in learned.items() if name != "grams"}, indent=2)
    return f'{head[:-2]},\n  "grams": [\n    {lines}\n  ]\n}}\n'


def counted_of(data: Answered, by_hand: Mapping[str, Any]) -> list[dict[str, float]]:
    """The features of what every prompt asks, unscaled."""
    empty = blank(by_hand)
    return [empty.counted(empty.asked(text)) for text in data.prompts]


def main() -> None:
    data, by_hand = load_or_exit(), kept()
    learned = scaled(by_hand, train(data, gram_rows(data), counted_of(data, by_hand)))
    target = Path(PACKAGE / "weights.json")
    target.write_text(written(learned))
    print(f"{target.relative_to(REPOSITORY)}: learned from {len(data.prompts)} prompts")


if __name__ == "__main__":
    main()
