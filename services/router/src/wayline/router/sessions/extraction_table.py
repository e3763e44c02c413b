"""Which turns of quiet sessions are to be read for what lasts, whose memories summarised, and the jobs that do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wayline.contracts.jobs import EXTRACTED_JOBS_MAX
from wayline.store import Record, Store

AT_ONCE = 200
"""Sessions decided about at one look, and jobs sent again; the others are at the next."""
SEND_AGAIN_AFTER_S = 5.0
"""How long a job that was decided is left to the router that decided it."""

Submission = Callable[[Record, Sequence[str]], tuple[str, str]]
"""Returns the id and the body of the job that reads these jobs of a session."""


class ExtractionTable:
    """The turns that nobody has read yet, and what was decided about them and not yet sent."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def unsent_and_quiet(self, *, quiet_s: float) -> tuple[list[Record], list[Record]]:
        """Return jobs that the bus may not have, and sessions of any tenant that have gone quiet with unread turns."""
        async with self._store.system() as conn:
            unsent = await conn.fetch(self._store.sql.unsent_extractions, SEND_AGAIN_AFTER_S, AT_ONCE)
            return unsent, await conn.fetch(self._store.sql.quiet_sessions, quiet_s, AT_ONCE)

    async def decide(self, row: Record, submission: Submission, *, quiet_s: float) -> Record | None:
        """Give the unread turns of a user in a session to one job, once; None: another was faster, or it goes on.

        The row of the session is locked meanwhile: no turn begins, and no other router decides.
        """
        tenant, session_id, sql = row["tenant"], row["session_id"], self._store.sql
        async with self._store.tenant(tenant) as conn:
            session = await conn.fetchrow(sql.lock_quiet_session, tenant, session_id, quiet_s)
            if session is None:
                return None
            named = (tenant, session_id, row["user_id"])
            turns = await conn.fetch(sql.unread_turns, *named, EXTRACTED_JOBS_MAX)
            jobs = [turn["job_id"] for turn in turns]
            if not jobs:
                return None
            job_id, body = submission(session, jobs)
            await conn.execute(sql.read_turns, tenant, jobs, job_id)
            return await conn.fetchrow(sql.begin_extraction, tenant, job_id, row["user_id"], body)

    async def want_summary(self, tenant: str, job_id: str, user_id: str, agent: str) -> None:
        """Note that what is remembered of a job's user is to be summarised; it stays noted since the first time."""
        await self._store.execute(tenant, self._store.sql.want_summary, tenant, user_id, agent, job_id)

    async def summaries_due(self, *, quiet_s: float, every_s: float) -> list[Record]:
        """Return users of any tenant of whom what is remembered is to be summarised now."""
        async with self._store.system() as conn:
            return await conn.fetch(self._store.sql.summaries_due, quiet_s, every_s, AT_ONCE)

    async def decide_summary(
        self, row: Record, submission: Callable[[Record], tuple[str, str]], *, quiet_s: float, every_s: float
    ) -> Record | None:
        """Have one job summarise what is remembered of a user, once; None: another router was faster."""
        tenant, user_id, sql = row["tenant"], row["user_id"], self._store.sql
        async with self._store.tenant(tenant) as conn:
            due = await conn.fetchrow(sql.lock_due_summary, tenant, user_id, quiet_s, every_s)
            if due is None:
                return None
            job_id, body = submission(due)
            await conn.execute(sql.begin_summary, tenant, user_id)
            return await conn.fetchrow(sql.begin_extraction, tenant, job_id, user_id, body)

    async def note_sent(self, tenant: str, job_id: str) -> None:
        """Note that the bus has a job."""
        await self._store.execute(tenant, self._store.sql.extraction_sent, tenant, job_id)
