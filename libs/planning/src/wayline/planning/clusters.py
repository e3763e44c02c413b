"""Texts that are alike, grouped: average linkage over vectors, the same groups for the same texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

from wayline.planning.tasks import TASKS_MAX
from wayline.planning.words import COMMON_FOLDED, rarity, stem, telling, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

SIMILARITY_MIN = 0.5
"""Of two groups on average, for them to become one, where vectors know what words mean."""
WORDS_SIMILARITY_MIN = 0.2
"""The same for vectors of words alone, which are further apart."""
WORD_DIMENSIONS = 1_024
LABEL_WORDS_MAX = 3
_LEVEL = 1e-9
"""What differs by less is alike: sums in another order end otherwise."""


def cluster_by_similarity(vectors: Any, *, similarity_min: float = SIMILARITY_MIN) -> list[list[int]]:
    """Return the rows of a matrix in groups: two become one while they are alike on average, the nearest first.

    Each group is in order, and groups are in the order of their first members. Raises ValueError for more than
    TASKS_MAX rows. Takes steps of the number of rows, squared.
    """
    import numpy as np

    matrix = np.asarray(vectors, dtype=np.float64)
    if matrix.size == 0:
        return [[at] for at in range(len(matrix))]
    if matrix.ndim != 2 or len(matrix) > TASKS_MAX:
        raise ValueError(f"a matrix of at most {TASKS_MAX} rows is needed, and this has the shape {matrix.shape}")
    length = np.linalg.norm(np.nan_to_num(matrix), axis=1, keepdims=True)
    normal = np.nan_to_num(matrix) / np.where(length > 0, length, 1.0)
    return _grouped(_merges(normal @ normal.T), len(matrix), similarity_min)


def word_vectors(texts: Sequence[str]) -> Matrix:
    """Return a vector of each text by the words that it shares with the others, the rare ones first."""
    import numpy as np

    said = [telling(words(text)) for text in texts]
    weights = rarity(said)
    matrix = np.zeros((len(texts), WORD_DIMENSIONS))
    for row, stems in enumerate(said):
        for one, count in Counter(stems).items():
            matrix[row, crc32(one.encode()) % WORD_DIMENSIONS] += count * weights[one]
    return matrix


def label(texts: Sequence[str], *, of: Sequence[str] = ()) -> str:
    """Return the words that most of texts share, else those that they say; the rare ones among all (`of`) first."""
    weights = rarity(telling(words(text)) for text in (of or texts))
    shown: dict[str, str] = {}
    held: Counter[str] = Counter()
    for text in texts:
        found = [word for word in words(text) if word.text not in COMMON_FOLDED and not word.text.isdigit()]
        for word in found:
            shown.setdefault(stem(word.text), text[word.start : word.end].lower())
        held.update({stem(word.text) for word in found})
    ranked = sorted(held, key=lambda one: (-held[one], -weights.get(one, 0.0), shown[one]))
    least = len(texts) // 2 + 1
    shared = [one for one in ranked if held[one] >= least]
    # Vectors may find alike what has no word in common.
    return " ".join(shown[one] for one in (shared or ranked)[:LABEL_WORDS_MAX])


def _merges(similar: Matrix) -> list[tuple[float, int, int]]:
    """Return every merge of the tree by chains of nearest neighbours: how alike, and a member of each side."""
    import numpy as np

    number = len(similar)
    size = np.ones(number)
    alive = np.ones(number, dtype=bool)
    np.fill_diagonal(similar, -np.inf)
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(merges) < number - 1:
        if not chain:
            chain.append(int(np.argmax(alive)))
        last = chain[-1]
        row = np.where(alive, similar[last], -np.inf)
        best = float(row.max())
        # The one before in the chain wins a draw: else chains of equal rows would have no end.
        before = chain[-2] if len(chain) > 1 else None
        nearest = (
            before if before is not None and row[before] >= best - _LEVEL else int(np.argmax(row >= best - _LEVEL))
        )
        if nearest != before:
            chain.append(nearest)
            continue
        chain = chain[:-2]
        keep, gone = min(last, nearest), max(last, nearest)
        merges.append((best, keep, gone))
        both = (size[keep] * similar[keep] + size[gone] * similar[gone]) / (size[keep] + size[gone])
        similar[keep], similar[:, keep] = both, both
        similar[keep, keep] = -np.inf
        size[keep] += size[gone]
        alive[gone] = False
    return merges


def _grouped(merges: Sequence[tuple[float, int, int]], number: int, similarity_min: float) -> list[list[int]]:
    root = list(range(number))

    def find(one: int) -> int:
        while root[one] != one:
            root[one] = root[root[one]]
            one = root[one]
        return one

    for similar, left, right in merges:
        if similar >= similarity_min - _LEVEL:
            keep, gone = sorted((find(left), find(right)))
            root[gone] = keep
    groups: dict[int, list[int]] = {}
    for one in range(number):
        groups.setdefault(find(one), []).append(one)
    return list(groups.values())
