"""Makes tomorrow's partition, removes what is past its retention, and brings words of a version before up to date."""

from __future__ import annotations

import structlog

from wayline.chassis import Periodic
from wayline.tracing.tables import Tables

log = structlog.get_logger()

REST_FACTOR = 20.0
"""A periodic task of this service rests this many times as long as it took: the readers come first."""


class Retention:
    """Applies the retention at the start, before anything is stored, and then every `every_s`."""

    def __init__(self, tables: Tables, *, ledger_days: int, every_s: float) -> None:
        self._tables = tables
        self._ledger_days = ledger_days
        self._periodic = Periodic("retention", self.keep, every_s=every_s, rest_factor=REST_FACTOR)
        self.stop = self._periodic.stop

    async def start(self) -> None:
        await self._tables.keep_spans()
        await self._periodic.start()

    async def keep(self) -> None:
        await self._tables.keep_spans()
        await self._tables.add_labels_to_words()
        gone = await self._tables.forget(days=self._ledger_days)
        if gone:
            log.info("removed what was too old", rows=gone)
