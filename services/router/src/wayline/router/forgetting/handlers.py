"""Begins to forget, and says how far that is."""

from __future__ import annotations

import asyncio
from hashlib import sha256

from wayline.chassis import Bus
from wayline.contracts import ids
from wayline.contracts.errors import Conflict, NotFound
from wayline.contracts.events import JobSubmitted
from wayline.contracts.forgetting import Forget, Forgetting, GetForgetting
from wayline.contracts.memory import SubjectRef
from wayline.journal import JobLog, State
from wayline.router.forgetting.forget_table import ForgetTable
from wayline.router.forgetting.jobs_to_end import JobsToEnd
from wayline.router.forgetting.open_forgets import GATE_CLOSED_AFTER_S
from wayline.router.forgetting.saga import Forgetter
from wayline.router.tenants.known_tenants import KnownTenants
from wayline.store import Record

MAY_REMAIN = (
    "backups, and snapshots of the database and the streams, until they are deleted",
    "the write-ahead log of Postgres, until its files are used again, and rows that VACUUM has not taken away",
    "the Raft logs of a clustered NATS, until its next snapshots",
    "what model providers and servers of tools keep of what they were sent",
    "lines in the logs of processes, which name jobs and, where something failed, users",
    "large fields of requests that name no job (dry runs, searches), for 30 days",
    "sums of the money ledger and of budgets, which name nobody",
)
"""What is beyond the reach of any request."""


class ForgetHandlers:
    """Answers requests to forget."""

    def __init__(
        self, bus: Bus, table: ForgetTable, *, tenants: KnownTenants, forgetter: Forgetter, jobs: JobsToEnd
    ) -> None:
        self._bus = bus
        self._table = table
        self._tenants = tenants
        self._forgetter = forgetter
        self._jobs = jobs

    async def on_forget(self, asked: Forget) -> Forgetting:
        """Begin to forget; while one of the same name is under way, return that one. Raises NotFound or Conflict."""
        await self._tenants.require(asked.tenant)
        if asked.job_id is not None:
            await self._require_ended(asked.tenant, asked.job_id, of_user=asked.of_user)
        wait_s = GATE_CLOSED_AFTER_S if asked.user_id is not None else 0
        row = await self._table.begin(
            asked, ids.new_id("forget"), name_sha256=name_sha256(asked), look_after_s=2 * wait_s
        )
        if asked.user_id is not None and row["submitted_upto"] is None:
            # What is submitted after the answer is not forgotten: so every router has to know before it.
            await asyncio.sleep(wait_s)
            await self._table.cut_submissions(row, upto=await self._jobs.last_submission())
        self._forgetter.look_now()
        return await self._shown(row)

    async def on_get(self, asked: GetForgetting) -> Forgetting:
        """Return how far it is, and its receipt. Raises NotFound."""
        row = await self._table.get(asked.tenant, asked.forget_id)
        if row is None or not _may_see(row, asked):
            raise NotFound("forgetting", asked.forget_id)
        return await self._shown(row)

    async def _require_ended(self, tenant: str, job_id: str, *, of_user: str | None) -> None:
        job_log = JobLog(self._bus, tenant, job_id)
        head = await job_log.last()
        if head is None:
            raise NotFound("job", job_id)
        if of_user is not None and await _user_of(job_log) != of_user:
            raise NotFound("job", job_id)
        if ids.is_child(job_id):
            raise Conflict(f"job {job_id!r} was started by another one: delete that, and it goes with it", code="child")
        if head.state is not State.ENDED:
            raise Conflict(f"job {job_id!r} has not ended: cancel it first", code="job_not_ended")

    async def _shown(self, row: Record) -> Forgetting:
        receipt = await self._table.receipt(row["tenant"], row["forget_id"])
        told = ("what", "step", "user_id", "job_id", "waits_for", "jobs")
        names = ("forget_id", "name_sha256", "asked_by", "asked_at", "done_at", *told)
        subject = None if row["subject_id"] is None else SubjectRef(type=row["subject_type"], id=row["subject_id"])
        return Forgetting(
            **{name: row[name] for name in names},
            subject_ref=subject,
            jobs_erased=await self._table.jobs_erased(row),
            receipt=receipt,
            left=row["left_over"] if row["step"] == "done" else None,
            may_remain=MAY_REMAIN,
        )


async def _user_of(job_log: JobLog) -> str | None:
    first = (await job_log.first())[0]
    return first.job.user_id if isinstance(first, JobSubmitted) else None


def name_sha256(asked: Forget) -> str:
    """Return the hash by which the same request is known again, also once the name itself is forgotten."""
    if asked.user_id is not None:
        return _hash_of(asked.tenant, "user", asked.user_id)
    if asked.job_id is not None:
        return _hash_of(asked.tenant, "job", asked.job_id)
    assert asked.subject_ref is not None
    return _hash_of(asked.tenant, "subject", f"{asked.subject_ref.type}/{asked.subject_ref.id}")


def _hash_of(tenant: str, what: str, name: str) -> str:
    return sha256(f"{tenant}\n{what}\n{name}".encode()).hexdigest()


def _may_see(row: Record, asked: GetForgetting) -> bool:
    """Return whether who asks may see a request: a key of one user sees that user's alone."""
    return asked.of_user is None or row["name_sha256"] == _hash_of(asked.tenant, "user", asked.of_user)
