"""Slow down servers that make much work of few bytes: each piece and each event costs the event loop something."""

from __future__ import annotations

import asyncio

BURST_BYTES = 8 * 1024 * 1024
RATE_BYTES_S = 512 * 1024
"""Of a tenant's servers, in bytes of work: 500 events a second are far more than any progress needs."""
PIECE_BYTES = 1024
"""A shorter piece or event costs as much as one of so many bytes; longer ones cost nothing, their bytes are bounded."""
LINE_BYTES = 64
TURN_BYTES = 64 * 1024
"""After so much work others have a turn."""
PAUSE_MAX_S = 1.0


class Pace:
    """How much work the answers of one tenant's servers may make: some at once, and then so much a second."""

    def __init__(self, *, burst_bytes: float = BURST_BYTES, rate_bytes_s: float = RATE_BYTES_S) -> None:
        self._burst = self._spare = burst_bytes
        self._rate = rate_bytes_s
        self._at: float | None = None
        self._in_turn = 0

    async def take_turn(self, size: int) -> None:
        """Count a piece of so many bytes, which are bounded: only a short one is work beyond them."""
        await self.spend(max(0, PIECE_BYTES - size))

    async def spend(self, work_bytes: int) -> None:
        """Count work that was done, and wait where it was too much of late."""
        now = asyncio.get_running_loop().time()
        earned = 0.0 if self._at is None else (now - self._at) * self._rate
        self._at = now
        self._spare = min(self._burst, self._spare + earned) - work_bytes
        self._in_turn += work_bytes
        if self._spare < 0:
            await asyncio.sleep(min(PAUSE_MAX_S, -self._spare / self._rate))
        elif self._in_turn >= TURN_BYTES:
            self._in_turn = 0
            await asyncio.sleep(0)
