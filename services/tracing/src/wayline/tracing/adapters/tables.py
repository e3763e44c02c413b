"""Writes rows to Postgres: one statement a table, however many rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import asyncpg

from wayline.store import Connection, Store
from wayline.telemetry import metrics
from wayline.tracing.rows import Rows, SpanRow
from wayline.tracing.tables import Drift, Key

LABELLED_AT_ONCE = 1_000
"""Jobs whose words get their label in one transaction."""
NO_PARTITION = "no partition of relation"
JOINED_AHEAD_DAYS = 2
"""A received span may begin a day after it came, and its trace is noted to be in use once a day."""


class PostgresTables:
    """Tracing's tables, written for all tenants."""

    def __init__(self, store: Store, *, spans_days: int) -> None:
        self._store = store
        self._spans_days = spans_days
        self._first = self._last = date.min

    async def keep_spans(self) -> None:
        """Make the partitions that are needed next, and drop those whose time is over."""
        async with self._store.system() as conn:
            row = await conn.fetchrow(self._store.sql.keep_spans, self._spans_days)
        assert row is not None
        self._first, self._last = row["first_day"], row["last_day"]

    async def forget(self, *, days: int) -> int:
        """Delete jobs, steps, ledger entries and deliveries older than `days`; returns how many rows.

        What joins a trace to a job goes with the trace's spans, which began a day after it at the latest.
        """
        sql, now = self._store.sql, datetime.now(UTC)
        before = now - timedelta(days=days)
        spans_gone = now - timedelta(days=self._spans_days + JOINED_AHEAD_DAYS)
        gone = 0
        async with self._store.system() as conn:
            for statement in (
                *(sql.forget_jobs, sql.forget_steps, sql.forget_ledger),
                *(sql.forget_deliveries, sql.forget_followers, sql.forget_feedback),
                sql.forget_received_spans,
            ):
                gone += int((await conn.execute(statement, before)).rpartition(" ")[2])
            gone += int((await conn.execute(sql.forget_joined_traces, spans_gone)).rpartition(" ")[2])
        return gone

    async def progress(self, keys: Sequence[Key]) -> dict[Key, int]:
        """Return the last projected event of each known job."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.progress_of_jobs, *zip(*keys, strict=True))
        return {(row["tenant"], row["job_id"]): row["seq"] for row in rows if row["seq"] is not None}

    async def add_labels_to_words(self) -> int:
        """Have jobs found by their labels whose words a version before has stored; return how many these were."""
        found = 0
        while True:
            async with self._store.system() as conn:
                status = await conn.execute(self._store.sql.add_labels_to_words, LABELLED_AT_ONCE)
            changed = int(status.rpartition(" ")[2])
            found += changed
            if changed < LABELLED_AT_ONCE:
                return found

    async def tenants(self, trace_ids: Iterable[str]) -> dict[str, str]:
        """Return the tenant whose job each trace is."""
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.tenants_of_traces, list(trace_ids))
        return {row["trace_id"]: row["tenant"] for row in rows if row["tenant"] is not None}

    async def write(self, rows: Rows) -> set[Key]:
        """Write in one transaction; returns the jobs that really moved on."""
        try:
            return await self._write(rows)
        except asyncpg.CheckViolationError as error:
            if NO_PARTITION not in str(error):
                raise
            # Another replica has moved the window on.
            await self.keep_spans()
            return await self._write(rows)

    async def _write(self, rows: Rows) -> set[Key]:
        async with self._store.system() as conn:
            moved = await self._put_all(conn, rows)
        return {(row["tenant"], row["job_id"]) for row in moved}

    async def _put_all(self, conn: Connection, rows: Rows) -> list[Any]:
        sql = self._store.sql
        # In one order everywhere, so that two replicas never wait for each other.
        spans = sorted(self._storable(rows.spans), key=lambda row: row[:3])
        moved = await _put(conn, sql.put_jobs, sorted(rows.jobs, key=lambda row: row[:2]))
        if ended := sorted((row.tenant, row.job_id, row.ended_at) for row in rows.jobs if row.ended_at is not None):
            # In one transaction with the job: a follower is told of every end, or the batch comes again.
            await conn.execute(sql.note_finished, *map(list, zip(*ended, strict=True)))
        await _put(conn, sql.put_steps, sorted(rows.steps, key=lambda row: row[:3]))
        await _put(conn, sql.put_ledger, sorted(rows.ledger, key=lambda row: row[:3]))
        await _put(conn, sql.put_spans, spans)
        return moved

    def _storable(self, spans: Sequence[SpanRow]) -> list[SpanRow]:
        """Return the spans whose day has a partition; drop and count the others."""
        kept: list[SpanRow] = []
        for span in spans:
            if self._first <= span.start.astimezone(UTC).date() <= self._last:
                kept.append(span)
            elif span.duration_ms is not None:
                # Once a span: one made from the log is written while it is open too.
                metrics.spans_dropped.labels("tracing", "too old").inc()
        return kept

    async def replace(self, key: Key, trace_id: str, seq: int, rows: Rows) -> None:
        """Put rows made from the whole log of one job in the place of what is there, in one transaction.

        Rows of a later event than `seq` stay: a tracing service that runs meanwhile has made them.
        """
        sql = self._store.sql
        async with self._store.system() as conn:
            labelled = await conn.fetchrow(sql.later_tags, *key)
            # Jobs first, as everywhere: another writer of this job waits here.
            for statement in (sql.clear_job, sql.clear_steps, sql.clear_ledger):
                await conn.execute(statement, *key, seq)
            span_ids = [span.span_id for span in rows.spans]
            await conn.execute(sql.clear_spans, trace_id, seq, span_ids, *key)
            await self._put_all(conn, rows)
            # No log tells what people said of the job, and how they labelled it later.
            if labelled is not None and labelled["tags_added"] is not None:
                await conn.execute(sql.put_later_tags, *key, *labelled)
            await conn.execute(sql.sum_feedback, key[0], [key[1]])

    async def drifted(self, heads: Mapping[Key, int]) -> dict[Key, Drift]:
        """Return the jobs whose rows differ from their logs, given the last event of each log, and how they differ."""
        keys = list(heads)
        columns = [key[0] for key in keys], [key[1] for key in keys], list(heads.values())
        async with self._store.system() as conn:
            rows = await conn.fetch(self._store.sql.drifted, *columns)
        return {(row["tenant"], row["job_id"]): Drift(row["drift"]) for row in rows}

    async def drift_places(self) -> dict[str, int]:
        """Return how far each walk of the drift check has come, in this process or another one."""
        async with self._store.system() as conn:
            return {row["walk"]: row["sequence"] for row in await conn.fetch(self._store.sql.drift_places)}

    async def put_drift_place(self, walk: str, sequence: int) -> None:
        """Note how far a walk of the drift check has come."""
        async with self._store.system() as conn:
            await conn.execute(self._store.sql.put_drift_place, walk, sequence)


async def _put(conn: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    return await conn.fetch(statement, rows) if rows else []
