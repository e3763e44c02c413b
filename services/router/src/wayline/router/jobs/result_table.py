"""How each user's newest run of each agent ended: one row, replaced when a newer run is admitted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from wayline.contracts.jobs import RunResult
from wayline.store import Store

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ResultTable:
    """Reads rows that admissions have begun, and writes into them how their runs ended."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def end(self, tenant: str, result: RunResult | None) -> None:
        """Keep how a run ended, if no newer one has begun meanwhile; repeats change nothing. None: it has no row."""
        if result is None:
            return
        values = result.model_dump(mode="json", include={"outcome", "plan", "metadata"})
        await self._store.execute(
            tenant,
            self._store.sql.end_latest_result,
            tenant,
            result.user_id,
            result.agent,
            result.job_id,
            result.status.value,
            values["outcome"],
            values["plan"],
            values["metadata"],
            result.ended_at,
        )

    async def get(self, tenant: str, *, agent: str, user_id: str) -> RunResult | None:
        """Return a user's newest run of an agent; None: there is none."""
        row = await self._store.fetchrow(tenant, self._store.sql.latest_result, tenant, user_id, agent)
        if row is None:
            return None
        return RunResult.model_validate(
            {
                **{name: row[name] for name in ("job_id", "status", "outcome", "plan", "metadata", "ended_at")},
                "user_id": user_id,
                "agent": agent,
                "accepted_at": EPOCH + timedelta(microseconds=row["accepted_ns"] // 1_000),
            },
            extra="ignore",
        )
