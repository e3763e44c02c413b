"""Accepted submissions in Postgres: what an Idempotency-Key stands for, and which jobs wait for their log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from wayline.contracts.jobs import JobView, Status, SubmitJob
from wayline.store import Store

CLAIM_FRESH_S = 1.0
"""For so long a second request waits for the first to have published; then it publishes itself, which is harmless."""
CLAIM_POLL_S = 0.05


@dataclass(frozen=True)
class Submission:
    """What is known of a submission; not accepted: it may never have reached the bus."""

    job_id: str
    content_hash: str
    accepted: bool
    age_s: float = 0.0


class Submissions:
    """The table `submissions`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sql = store.sql

    async def claim(self, job: SubmitJob, *, key: str | None) -> Submission:
        """Reserve the job's id and the key before anything is published; the answer is who holds them.

        The key decides where both are known: the same key always means the same job.
        """
        tenant, job_id = job.tenant, str(job.job_id)
        command_tag = await self._store.execute(
            tenant, self._sql.claim_submission, tenant, job_id, key, job.content_hash()
        )
        if command_tag == "INSERT 0 1":
            return Submission(job_id, job.content_hash(), accepted=False)
        while True:
            held = await self._held(tenant, job_id, key)
            if held.accepted or held.age_s > CLAIM_FRESH_S:
                return held
            # Another request is publishing it right now, or was killed while it did.
            await asyncio.sleep(CLAIM_POLL_S)

    async def was_accepted(self, job: SubmitJob, *, key: str | None) -> bool:
        """Return whether the bus has stored a job of this key or id before."""
        tenant = job.tenant
        if key is not None:
            row = await self._store.fetchrow(tenant, self._sql.submission_by_key, tenant, key)
            if row is not None:
                return row["accepted_at"] is not None
        row = await self._store.fetchrow(tenant, self._sql.submission_by_job, tenant, job.job_id)
        return row is not None and row["accepted_at"] is not None

    async def _held(self, tenant: str, job_id: str, key: str | None) -> Submission:
        row = None
        if key is not None:
            row = await self._store.fetchrow(tenant, self._sql.submission_by_key, tenant, key)
        if row is None:
            row = await self._store.fetchrow(tenant, self._sql.submission_by_job, tenant, job_id)
        assert row is not None
        return Submission(row["job_id"], row["content_hash"], row["accepted_at"] is not None, row["age_s"])

    async def accepted(self, job: SubmitJob, *, key: str | None) -> None:
        """Note that the bus has stored the job."""
        await self._store.execute(
            job.tenant,
            self._sql.accept_submission,
            job.tenant,
            job.job_id,
            key,
            job.content_hash(),
            job.agent,
            job.session_id,
            job.user_id,
        )

    async def queued(self, tenant: str, job_id: str) -> JobView | None:
        """Return a job that was accepted and has no log yet, as HTTP shows it."""
        row = await self._store.fetchrow(tenant, self._sql.queued_submission, tenant, job_id)
        if row is None:
            return None
        return JobView(
            job_id=row["job_id"],
            status=Status.QUEUED,
            agent=row["agent"],
            session_id=row["session_id"],
            user_id=row["user_id"],
            created_at=row["accepted_at"],
        )
