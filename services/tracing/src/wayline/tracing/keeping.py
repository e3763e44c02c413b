"""Keeps the tables as long as they are to be kept: tomorrow's partition is made, what is too old goes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncpg
import structlog

from wayline.store import PostgresUnavailable
from wayline.tracing.adapters.tables import Tables

log = structlog.get_logger()


class Keeper:
    """Does it at the start, before anything is stored, and then every so often."""

    def __init__(self, tables: Tables, *, ledger_days: int, every_s: float) -> None:
        self._tables = tables
        self._ledger_days = ledger_days
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._tables.keep_spans()
        self._task = asyncio.create_task(self._run(), name="retention")

    async def stop(self, grace_s: float) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            try:
                await self._tables.keep_spans()
                gone = await self._tables.forget(days=self._ledger_days)
                if gone:
                    log.info("removed what was too old", rows=gone)
            except (PostgresUnavailable, asyncpg.PostgresError, TimeoutError) as error:
                log.warning("what is too old stays for now", why=str(error))
            await asyncio.sleep(self._every_s)
