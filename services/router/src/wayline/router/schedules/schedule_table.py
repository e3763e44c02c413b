"""Schedules in Postgres: one row each, changed under its lock, with the firings of each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

import asyncpg

from wayline.contracts.schedules import ScheduleConfig
from wayline.store import Connection, Record, Store


class CreatedMeanwhile(Exception):
    """Another process has created the schedule at the same moment."""


@dataclass(frozen=True, slots=True)
class LockedSchedule:
    """A schedule that nobody else changes meanwhile; `row`: as it was before, None: there is none."""

    row: Record | None
    _name: str
    _tenant: str
    _conn: Connection
    _store: Store

    async def now(self) -> datetime:
        """Return the database's time."""
        return await self._conn.fetchval(self._store.sql.now)

    async def count(self) -> int:
        """Return how many schedules the tenant has."""
        return await self._conn.fetchval(self._store.sql.count_schedules, self._tenant)

    async def save(self, config: ScheduleConfig, *, next_at: datetime | None) -> Record:
        """Create the schedule, or change it."""
        encoded = config.model_dump_json(exclude_unset=True)
        if self.row is not None:
            row = await self._conn.fetchrow(self._store.sql.change_schedule, self._tenant, self._name, encoded, next_at)
        else:
            row = await self._conn.fetchrow(
                self._store.sql.create_schedule, self._tenant, self._name, uuid4().hex, encoded, next_at
            )
        assert row is not None
        return row


class ScheduleTable:
    """The rows of schedules."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @asynccontextmanager
    async def locked(self, tenant: str, name: str) -> AsyncIterator[LockedSchedule]:
        """Yield a schedule in one transaction. Raises CreatedMeanwhile: try again."""
        try:
            async with self._store.tenant(tenant) as conn:
                row = await conn.fetchrow(self._store.sql.lock_schedule, tenant, name)
                yield LockedSchedule(row, name, tenant, conn, self._store)
        except asyncpg.UniqueViolationError:
            raise CreatedMeanwhile from None

    async def has_agent(self, tenant: str, agent: str) -> bool:
        """Return whether there is an agent of this name."""
        return await self._store.fetchrow(tenant, self._store.sql.get_agent, tenant, agent) is not None

    async def get(self, tenant: str, name: str) -> Record | None:
        """Return a schedule's row."""
        return await self._store.fetchrow(tenant, self._store.sql.get_schedule, tenant, name)

    async def list(self, tenant: str, *, after: str, limit: int) -> list[Record]:
        """Return a tenant's schedules by name, those behind a name."""
        return await self._store.fetch(tenant, self._store.sql.list_schedules, tenant, after, limit)

    async def delete(self, tenant: str, name: str) -> bool:
        """Delete a schedule; return whether it was there."""
        status = await self._store.execute(tenant, self._store.sql.delete_schedule, tenant, name)
        return not status.endswith(" 0")

    async def run(self, tenant: str, name: str, *, job_id: str, submission: str) -> Record | None:
        """Fire a schedule once by hand; return the firing, also where it was fired before."""
        fired = await self._store.fetchrow(tenant, self._store.sql.run_schedule, tenant, name, job_id, submission)
        # In a statement of its own: the first one does not see what another did at the same moment.
        return fired or await self._store.fetchrow(tenant, self._store.sql.get_firing, tenant, job_id)

    async def firings(self, tenant: str, uids: Sequence[str], *, limit: int) -> list[Record]:
        """Return the last firings of schedules, `limit` of each."""
        return await self._store.fetch(tenant, self._store.sql.firings_of_schedules, tenant, uids, limit)


def read_config(row: Record) -> ScheduleConfig:
    """Return the configuration in a schedule's row."""
    return ScheduleConfig.model_validate_json(row["config"], extra="ignore")
