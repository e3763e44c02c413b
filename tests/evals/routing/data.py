"""What the router's judgement is measured on, and how: gain recovered against share sent to the strong model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..shared import path, rows

HERE = Path(__file__).parent
DATA = ("routing-routellm-dev", "dev.jsonl.gz")
FOLDS = 5
SEEDS = (0, 1, 2)

Array = np.ndarray


@dataclass(frozen=True)
class Answered:
    """Prompts, and whether the weak and the strong model got them right."""

    prompts: Sequence[str]
    part: Array
    subject: Array
    weak: Array
    strong: Array

    @property
    def gain(self) -> Array:
        return self.strong - self.weak

    def where(self, chosen: Array) -> Answered:
        at = np.flatnonzero(chosen)
        return Answered([self.prompts[i] for i in at], self.part[at], self.subject[at], self.weak[at], self.strong[at])


def load() -> Answered:
    """The public data; a test is skipped where it is not there."""
    found = rows(*DATA)
    return Answered(
        [row["prompt"] for row in found],
        np.array([row["set"] for row in found]),
        np.array([row["domain"] for row in found]),
        np.array([row["weak"] for row in found], float),
        np.array([row["strong"] for row in found], float),
    )


def load_or_exit() -> Answered:
    """The same for a script, which ends where it is not there."""
    if not path(*DATA).exists():
        sys.exit(f"{path(*DATA)} is not here; set WAYLINE_SHARED to the folder that has data/{DATA[0]}")
    return load()


def splits(data: Answered, seed: int) -> Iterator[tuple[Array, Array]]:
    """Training and test rows: MMLU by whole subjects, GSM8K (one subject) by problem."""
    chance = np.random.default_rng(seed)
    subjects = chance.permutation(sorted(set(data.subject[data.part == "mmlu"])))
    problems = chance.permutation(np.flatnonzero(data.part == "gsm8k"))
    for fold in range(FOLDS):
        test = np.isin(data.subject, subjects[fold::FOLDS])
        test[problems[fold::FOLDS]] = True
        yield ~test, test


@dataclass(frozen=True)
class Recovered:
    """APGR: the area under the recovered gain. CPT(x): the share of strong calls that recovers x per cent of it."""

    apgr: float
    cpt50: float
    cpt80: float

    def __str__(self) -> str:
        return f"{self.apgr:.3f} / {self.cpt50:.3f} / {self.cpt80:.3f}"


def recovered(score: Array, gain: Array) -> Recovered:
    """The highest scores go to the strong model first; equal ones in no order, each with their mean gain."""
    _, group = np.unique(-score, return_inverse=True)
    mean = np.bincount(group, gain) / np.bincount(group)
    curve = np.concatenate([[0.0], np.cumsum(mean[np.sort(group)])]) / gain.sum()
    share = np.linspace(0, 1, len(curve))
    cpt50, cpt80 = (float(share[np.argmax(curve >= reached)]) for reached in (0.5, 0.8))
    return Recovered(float(np.trapezoid(curve, share)), cpt50, cpt80)
