"""Sessions and their turns in Postgres: the order of jobs, and the turns that are not known to have ended.

The tables say the order; whether a job has ended is decided by its log. So a row that was not marked in time delays
no job: the next router that looks finds the end in the log, and marks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from wayline.contracts.jobs import Turn
from wayline.contracts.sessions import Session, SessionTurn
from wayline.store import Record, Store


class TurnTable:
    """One row a session, one row a turn."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def turn_of(self, tenant: str, job_id: str) -> Turn | None:
        """Return the turn that a job has taken."""
        row = await self._store.fetchrow(tenant, self._store.sql.turn_of, tenant, job_id)
        return Turn(number=row["number"], after=row["after"]) if row else None

    async def open(self, tenant: str, session_id: str, *, before: int | None = None, limit: int) -> list[str]:
        """Return the jobs of turns that are not marked as ended, in their order; `before`: of lower numbers."""
        rows = await self._store.fetch(tenant, self._store.sql.open_turns, tenant, session_id, before, limit)
        return [row["job_id"] for row in rows]

    async def end(self, tenant: str, job_ids: Sequence[str]) -> list[str]:
        """Mark turns as ended; return their sessions."""
        rows = await self._store.fetch(tenant, self._store.sql.end_turns, tenant, job_ids)
        return [row["session_id"] for row in rows if row["session_id"] is not None]

    async def remember_for(self, tenant: str, job_id: str, user_id: str) -> None:
        """Note that what a user said in a turn is to be read for what lasts, once its session is quiet."""
        await self._store.execute(tenant, self._store.sql.remember_turn, tenant, job_id, user_id)

    async def steering(self, tenant: str, session_id: str) -> list[str]:
        """Return the jobs that steer a running one which was not told of them, in their order."""
        rows = await self._store.fetch(tenant, self._store.sql.steering_turns, tenant, session_id)
        return [row["job_id"] for row in rows]

    async def note_steered(self, tenant: str, job_id: str) -> None:
        """Note that the running job was told of this one."""
        await self._store.execute(tenant, self._store.sql.steered, tenant, job_id)

    async def first_open(self, place: tuple[str, str], *, older_than_s: float, limit: int) -> list[Record]:
        """Return the first open turn of each session behind a place, of all tenants."""
        async with self._store.system() as conn:
            return await conn.fetch(self._store.sql.first_open_turns, *place, older_than_s, limit)

    async def forget(self, *, after_days: int, at_most: int) -> int:
        """Forget turns that are so old; return how many."""
        async with self._store.system() as conn:
            return await conn.fetchval(self._store.sql.forget_turns, after_days, at_most)

    async def session(self, tenant: str, session_id: str) -> Record | None:
        """Return the row of a session."""
        return await self._store.fetchrow(tenant, self._store.sql.get_session, tenant, session_id)

    async def turns(self, tenant: str, session_id: str, *, before: int | None, limit: int) -> list[SessionTurn]:
        """Return turns of a session, the newest first; `before`: of lower numbers."""
        sql = self._store.sql.turns_of_session
        rows = await self._store.fetch(tenant, sql, tenant, session_id, before, limit)
        return [SessionTurn(**dict(row)) for row in rows]

    async def sessions(
        self,
        tenant: str,
        *,
        agent: str | None,
        user_id: str | None,
        after: tuple[datetime, str] | None,
        limit: int,
    ) -> list[Session]:
        """Return a tenant's sessions, the last used first; `after`: behind this place."""
        sql, place = self._store.sql.list_sessions, after or (None, None)
        rows = await self._store.fetch(tenant, sql, tenant, agent, user_id, *place, limit)
        return [Session(**dict(row)) for row in rows]

    async def forget_session(self, tenant: str, session_id: str) -> tuple[bool, str | None]:
        """Delete a session that has no open turn; return whether it was there, and the job of its open turn."""
        row = await self._store.fetchrow(tenant, self._store.sql.forget_session, tenant, session_id)
        assert row is not None
        return row["deleted"], row["open_job"]
