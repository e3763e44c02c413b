"""Deletes ledger rows that no job can ask for any more."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from wayline.tool_registry.errors import LedgerUnavailable
from wayline.tool_registry.ledger import Ledger

EVERY_S = 3_600.0


class LedgerRetention:
    """Runs once an hour, in every replica: deleting twice does no harm."""

    def __init__(self, ledger: Ledger, *, after_days: int) -> None:
        self._ledger = ledger
        self._after_days = after_days
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="forgetting old calls")

    async def stop(self, grace_s: float) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            with suppress(LedgerUnavailable):
                await self._ledger.forget(after_days=self._after_days)
