"""Writes received spans and their joins to Postgres, within what a tenant may send in an hour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from wayline.store import Store
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.rows import Rows, SpanRow

JOINS_MAX = 64
"""Traces that one job's tree shows beside its own."""


class PostgresReceivedTable:
    """Received spans: the tables that all spans are in, what joins them to jobs, and how many came."""

    def __init__(self, store: Store, tables: PostgresTables) -> None:
        self._store = store
        self._tables = tables

    async def receive(
        self, tenant: str, spans: Sequence[SpanRow], joins: Iterable[tuple[Any, ...]], *, hourly_max: int
    ) -> int:
        """Store as many spans as the hour has room for, the first ones; returns how many."""
        sql = self._store.sql
        async with self._store.tenant(tenant) as conn:
            room = await conn.fetchval(sql.take_room_for_spans, tenant, len(spans), hourly_max)
            kept = spans[: max(0, room)]
            if rows := [(tenant, *join) for join in joins if kept]:
                await conn.executemany(sql.join_traces, [(*row, JOINS_MAX) for row in rows])
        # The same spans again are the same rows, and what was joined without them joins nothing.
        await self._tables.write(Rows(spans=list(kept)))
        return len(kept)
