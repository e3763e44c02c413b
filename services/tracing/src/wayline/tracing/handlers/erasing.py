"""Erases what tracing shows of users and jobs; what they cost stays, without a name."""

from __future__ import annotations

from wayline.contracts import ids
from wayline.contracts.forgetting import Erased, EraseFromTracing
from wayline.store import Connection, Store
from wayline.tracing.views.feedback import feedback_spans


class Eraser:
    """Counts and erases rows, in one transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def on_erase(self, asked: EraseFromTracing) -> Erased:
        """Erase what is of a user or of jobs, and say how much it was."""
        sql, tenant, jobs = self._store.sql, asked.tenant, list(asked.job_ids)
        # Also of jobs whose rows have not come yet, or are gone: services export spans of their own.
        traces = [ids.trace_id(tenant, job_id) for job_id in jobs]
        async with self._store.tenant(tenant) as conn:
            row = await conn.fetchrow(sql.count_erasable, tenant, asked.user_id, jobs, traces)
            assert row is not None
            kept = {"ledger_entries_without_a_name": await conn.fetchval(sql.count_nameless, tenant, jobs)}
            if asked.samples:
                same_words = await conn.fetchval(sql.rows_with_samples, tenant, list(asked.samples))
                kept["rows_of_other_jobs_with_the_same_words"] = same_words
            if not asked.count_only:
                known = await conn.fetch(sql.jobs_to_erase, tenant, asked.user_id, jobs)
                jobs = sorted({*jobs, *(one["job_id"] for one in known)})
                traces = sorted({*traces, *(one["trace_id"] for one in known)})
                # Jobs first, as everywhere: another writer of one of them waits here.
                for statement in (sql.erase_jobs, sql.erase_steps, sql.erase_deliveries):
                    await conn.execute(statement, tenant, jobs)
                await conn.execute(sql.erase_names, tenant, asked.user_id, jobs)
                await self._erase_feedback(conn, tenant, asked.user_id, jobs)
                await conn.execute(sql.erase_spans, tenant, traces)
                await conn.execute(sql.erase_joins, tenant, traces)
        return Erased(counts=_some(dict(row)), kept=_some(kept))

    async def _erase_feedback(self, conn: Connection, tenant: str, user_id: str | None, jobs: list[str]) -> None:
        """Erase what was said of the jobs, and what the user said of the jobs of others."""
        sql = self._store.sql
        erased = await conn.fetch(sql.erase_feedback, tenant, user_id, jobs)
        said = [
            (ids.trace_id(tenant, one["job_id"]), span)
            for one in erased
            for span in feedback_spans(tenant, one["job_id"], one["given_by"], one["key"], one["revision"])
        ]
        if said:
            await conn.execute(sql.erase_spans_of_feedback, tenant, *map(list, zip(*said, strict=True)))
        await conn.execute(sql.sum_feedback, tenant, sorted({one["job_id"] for one in erased}))


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}
