"""Firings in Postgres: one row for each moment of a schedule that was decided about."""

from __future__ import annotations

from typing import Any

from wayline.contracts.jobs import FiredBy
from wayline.router.schedules.moments import FiringDecision
from wayline.store import Record, Store

DUE_AT_ONCE = 500
"""Schedules decided at one look; the others are decided at the next."""
SENT_AT_ONCE = 500
SEND_AGAIN_AFTER_S = 2.0
"""How long a firing that was decided is left to the router that decided it."""
KEPT_DAYS = 30
"""How long a firing is kept: as long as its job's log."""
FORGOTTEN_AT_ONCE = 10_000


class FiringTable:
    """What became of the moments of schedules."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def unsent_and_due(self) -> tuple[list[Record], list[Record]]:
        """Return the firings whose jobs the bus may not have, and the schedules whose moment has come."""
        async with self._store.system() as conn:
            unsent = await conn.fetch(self._store.sql.unsent_firings, SEND_AGAIN_AFTER_S, SENT_AT_ONCE)
            return unsent, await conn.fetch(self._store.sql.due_schedules, DUE_AT_ONCE)

    async def last(self, tenant: str, uid: str) -> Record | None:
        """Return the firing of a schedule that was decided last."""
        return await self._store.fetchrow(tenant, self._store.sql.last_firing, tenant, uid)

    async def decide(
        self, row: Record, job_id: str, decision: FiringDecision, *, submission: str | None
    ) -> Record | None:
        """Keep what was decided about a due schedule and plan its next moment; None: another was faster."""
        given: tuple[Any, ...] = (
            *(row["tenant"], row["name"], row["uid"], row["version"], row["next_at"], decision.next_at),
            *(job_id, decision.due_at, "skipped" if decision.skipped else "fired", decision.skipped, decision.missed),
            submission,
        )
        return await self._store.fetchrow(row["tenant"], self._store.sql.decide_firing, *given)

    async def note_sent(self, tenant: str, job_id: str) -> None:
        """Note that the bus has a firing's job."""
        await self._store.execute(tenant, self._store.sql.firing_sent, tenant, job_id)

    async def note_failed(self, tenant: str, job_id: str, why: str) -> None:
        """Mark a firing that cannot be submitted."""
        await self._store.execute(tenant, self._store.sql.firing_failed, tenant, job_id, why)

    async def note_refused(self, tenant: str, job_id: str, reason: str) -> None:
        """Note that a firing's submission was refused."""
        await self._store.execute(tenant, self._store.sql.firing_refused, tenant, job_id, reason)

    async def fired_by(self, tenant: str, job_id: str) -> FiredBy | None:
        """Return the schedule and the moment that a job was submitted for."""
        row = await self._store.fetchrow(tenant, self._store.sql.firing_of_job, tenant, job_id)
        return None if row is None else FiredBy(**dict(row))

    async def forget(self) -> None:
        """Forget firings that are as old as the logs."""
        async with self._store.system() as conn:
            await conn.execute(self._store.sql.forget_firings, KEPT_DAYS, FORGOTTEN_AT_ONCE)
