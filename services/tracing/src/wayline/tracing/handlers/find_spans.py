"""Answers to searches for spans."""

from __future__ import annotations

from wayline.contracts.span_search import FoundSpan, ListSpanNames, SearchSpans, SpanName, SpanNames, SpanPage
from wayline.store import Store
from wayline.tracing.views import span_statements
from wayline.tracing.views.span_statements import Place

LOOKS_MAX = 10
"""How often the next `LOOKED_MAX` spans are looked at for traces."""


class SpanSearch:
    """Finds spans of one tenant at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def search(self, asked: SearchSpans) -> SpanPage:
        """Return a page of spans, or one span each of so many traces. Raises BadCursor."""
        after = span_statements.after_cursor(asked.cursor) if asked.cursor else None
        if asked.trace_ids:
            return SpanPage(spans=await self._one_a_trace(asked))
        said = span_statements.statements(asked, after)
        async with self._store.tenant(asked.tenant) as conn:
            rows = await conn.fetch(said.page, *said.arguments)
            more = len(rows) > asked.limit
            end = rows[asked.limit - 1] if more else await conn.fetchrow(said.end, *said.end_arguments)
        spans = tuple(span_statements.found_span(row) for row in rows[: asked.limit])
        place = span_statements.place_of(end) if end else None
        return SpanPage(spans=spans, next_cursor=span_statements.cursor(place) if place else None)

    async def _one_a_trace(self, asked: SearchSpans) -> tuple[FoundSpan, ...]:
        traces: dict[str, FoundSpan] = {}
        after: Place | None = None
        for _ in range(LOOKS_MAX):
            said = span_statements.statements(asked, after)
            async with self._store.tenant(asked.tenant) as conn:
                rows = await conn.fetch(said.page, *said.arguments)
                end = await conn.fetchrow(said.end, *said.end_arguments)
            for row in rows:
                traces.setdefault(row["trace_id"], span_statements.found_span(row))
            if end is None or len(traces) >= asked.limit:
                break
            after = span_statements.place_of(end)
        return tuple(traces.values())[: asked.limit]

    async def list_names(self, asked: ListSpanNames) -> SpanNames:
        """Return what the newest spans are called."""
        sql = self._store.sql.span_names
        rows = await self._store.fetch(asked.tenant, sql, asked.tenant, asked.user_id)
        return SpanNames(names=tuple(SpanName(**dict(row)) for row in rows))
