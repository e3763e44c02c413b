"""So many bytes at once: first come, first served."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class BytesInFlight:
    """A bound on what is in memory at the same time; what is larger than all of it has it alone."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = self._free_bytes = max_bytes
        self._waiting: dict[asyncio.Event, int] = {}

    @contextmanager
    def wanted(self, size_bytes: int) -> Iterator[asyncio.Event]:
        """Yield a turn that is set once there is room, and give back what was taken, whether its turn came or not."""
        turn, size_bytes = asyncio.Event(), min(size_bytes, self._max_bytes)
        self._waiting[turn] = size_bytes
        self._let_in()
        try:
            yield turn
        finally:
            if self._waiting.pop(turn, None) is None:
                self._free_bytes += size_bytes
            self._let_in()

    def _let_in(self) -> None:
        for turn, size_bytes in [*self._waiting.items()]:
            # Nobody is passed by: what is large would wait for ever.
            if size_bytes > self._free_bytes:
                return
            del self._waiting[turn]
            self._free_bytes -= size_bytes
            turn.set()
