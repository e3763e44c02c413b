"""The little linear algebra that training needs: sparse rows, ridge and logistic regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Array = np.ndarray
STEPS_MAX = 200


class Sparse:
    """Rows of few values in many columns."""

    def __init__(self, rows: Sequence[Mapping[int, float]], columns: int) -> None:
        self.rows, self.columns = rows, columns
        lengths = [len(row) for row in rows]
        self._row = np.repeat(np.arange(len(rows)), lengths)
        self._column = np.array([column for row in rows for column in row], np.int64)
        self._value = np.array([value for row in rows for value in row.values()], float)

    def where(self, chosen: Array) -> Sparse:
        return Sparse([self.rows[i] for i in np.flatnonzero(chosen)], self.columns)

    def times(self, weights: Array) -> Array:
        return np.bincount(self._row, self._value * weights[self._column], minlength=len(self.rows))

    def gathered(self, values: Array) -> Array:
        """The transposed product: what each column adds up to."""
        return np.bincount(self._column, self._value * values[self._row], minlength=self.columns)


def ridge(rows: Sparse, target: Array, importance: Array, strength: float) -> Array:
    """Weights that minimise the weighted squared error plus `strength` times their squares, by conjugate gradients."""
    weights = np.zeros(rows.columns)
    rest = rows.gathered(importance * target)
    direction, size = rest.copy(), float(rest @ rest)
    for _ in range(STEPS_MAX):
        if size < 1e-9:
            break
        bent = rows.gathered(importance * rows.times(direction)) + strength * direction
        step = size / float(direction @ bent)
        weights += step * direction
        rest -= step * bent
        before, size = size, float(rest @ rest)
        direction = rest + (size / before) * direction
    return weights


def logistic(rows: Sparse, target: Array, strength: float) -> Array:
    """Weights of a logistic regression whose intercept is the base rate, by accelerated gradients."""
    weights = previous = np.zeros(rows.columns)
    base = float(np.log(target.mean() / (1 - target.mean())))
    pace = 1 / (0.25 * _stretch(rows) + strength)
    for step in range(STEPS_MAX):
        ahead = weights + step / (step + 3) * (weights - previous)
        wrong = 1 / (1 + np.exp(-(rows.times(ahead) + base))) - target
        previous, weights = weights, ahead - pace * (rows.gathered(wrong) + strength * ahead)
    return weights


def _stretch(rows: Sparse) -> float:
    """The largest eigenvalue of the rows' Gram matrix, by power iteration."""
    vector = np.ones(rows.columns)
    for _ in range(20):
        vector = rows.gathered(rows.times(vector / np.linalg.norm(vector)))
    return 1.1 * float(np.linalg.norm(vector))
