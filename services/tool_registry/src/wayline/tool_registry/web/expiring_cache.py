"""Values that are kept for a while, within a limit on their size."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class ExpiringCache(Generic[V]):
    """Keeps values for a time; the longest unused go first when there is no room."""

    def __init__(self, *, keep_s: float, max_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._keep_s = keep_s
        self._max_bytes = max_bytes
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, int, V]] = OrderedDict()
        self.size_bytes = 0

    def get(self, key: Hashable) -> V | None:
        """Return a value that is still fresh."""
        if key not in self._kept:
            return None
        until, _, value = self._kept[key]
        if until <= self._clock():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V, *, size_bytes: int) -> None:
        """Keep a value, unless it alone is larger than all may be."""
        if key in self._kept:
            self._drop(key)
        if size_bytes > self._max_bytes or self._keep_s <= 0:
            return
        self._kept[key] = (self._clock() + self._keep_s, size_bytes, value)
        self.size_bytes += size_bytes
        while self.size_bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        self.size_bytes -= self._kept.pop(key)[1]
