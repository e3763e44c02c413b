"""Vectors of tools by the hash of their text, within a limit of bytes: those that were used longest ago go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]


class VectorCache:
    """Keeps the vectors that were used last."""

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._bytes = 0

    def __contains__(self, key: str) -> bool:
        return key in self._vectors

    def get(self, key: str) -> Vector | None:
        """Return a vector without counting that as a use; it may be called from another thread."""
        return self._vectors.get(key)

    def room(self, vector: Vector) -> int:
        """Return how many vectors of this one's size there is room for in an empty cache."""
        return self._max_bytes // max(1, vector.nbytes)

    def use(self, keys: Iterable[str]) -> None:
        """Count the vectors that are there as used now."""
        for key in keys:
            if key in self._vectors:
                self._vectors.move_to_end(key)

    def keep(self, key: str, vector: Vector) -> int:
        """Add a vector, and return how many others had to go."""
        before = self._vectors.pop(key, None)
        self._vectors[key] = vector
        self._bytes += vector.nbytes - (before.nbytes if before is not None else 0)
        dropped = 0
        while self._bytes > self._max_bytes:
            self._bytes -= self._vectors.popitem(last=False)[1].nbytes
            dropped += 1
        return dropped

    def clear(self) -> None:
        """Forget all vectors."""
        self._vectors.clear()
        self._bytes = 0
