"""A stand-in for an embedder: latent semantic analysis of the tools alone, where no embedding model is to be had."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

import numpy as np

from wayline.tool_registry.tool_search import ToolIndex
from wayline.tool_registry.tool_search.tool_words import stem, words

DIMENSIONS = 256
OVERSAMPLED, ITERATIONS = 20, 2
Array = np.ndarray[Any, np.dtype[np.float32]]


class Latent:
    """Vectors of tools and tasks from the words that occur together in the tools."""

    def __init__(self, index: ToolIndex) -> None:
        texts = [[stem(word) for word in words(one.text)] for one in index.texts]
        vocabulary = sorted({word for text in texts for word in text})
        self._places = {word: at for at, word in enumerate(vocabulary)}
        counts = np.zeros((len(texts), len(vocabulary)), np.float32)
        for row, text in enumerate(texts):
            for word in text:
                counts[row, self._places[word]] += 1
        self._idf = np.array([log(len(texts) / held) + 1 for held in (counts > 0).sum(axis=0)], np.float32)
        weighted = _normal(np.log1p(counts) * self._idf)
        self._axes = _axes(weighted)
        self._vectors = _normal(weighted @ self._axes)

    def similar(self, task: str) -> Mapping[int, float]:
        """Return the cosines of a task and all tools, by place in the index."""
        counts = np.zeros(len(self._places), np.float32)
        for word in words(task):
            if (at := self._places.get(stem(word))) is not None:
                counts[at] += 1
        query = _normal(((np.log1p(counts) * self._idf) @ self._axes)[None, :])[0]
        return dict(enumerate((self._vectors @ query).tolist()))


def _axes(matrix: Array) -> Array:
    """Return the strongest directions of a matrix's rows, by subspace iteration."""
    random = np.random.default_rng(0)
    size = min(DIMENSIONS, *matrix.shape)
    basis = random.standard_normal((matrix.shape[1], min(size + OVERSAMPLED, *matrix.shape))).astype(np.float32)
    for _ in range(ITERATIONS):
        basis = np.linalg.qr(matrix.T @ (matrix @ basis))[0]
    _, _, right = np.linalg.svd(matrix @ basis, full_matrices=False)
    return np.asarray((basis @ right.T)[:, :size], np.float32)


def _normal(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), np.float32)
