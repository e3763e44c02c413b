"""Has sessions read for what lasts once they have gone quiet: a job for the turns that none has read yet. The same way
what is remembered of a user is summarised: a job from time to time.

Which turns are to be read stands in their rows since their jobs were settled, and no process holds a timer. The turns
are given to one job in the transaction that keeps its submission, which is published until the bus has it, always as
the same job. So a router may die anywhere, and several may look at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import structlog

from wayline.chassis import Bus, Failpoint, Periodic, reach
from wayline.chassis.concurrency.each_alone import each_alone
from wayline.contracts import ids
from wayline.contracts.errors import Full
from wayline.contracts.jobs import MEMORY_TAG, SUMMARY_INPUT, Extraction, JobOptions, SubmitJob, Summarizing
from wayline.router.sessions.extraction_table import ExtractionTable
from wayline.store import Record

log = structlog.get_logger()

INPUT = "Remember what lasts of what I said in session {}."


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """When a session counts as quiet, and what reading it may cost."""

    quiet_s: float
    budget_usd: Decimal | None
    every_s: float
    summary_every_s: float
    """How long after one job another one may summarise what is remembered of the same user."""


class Extractions:
    """Looks every so often for sessions that have gone quiet, and submits the jobs that read them."""

    def __init__(self, bus: Bus, table: ExtractionTable, limits: ExtractionLimits) -> None:
        self._bus = bus
        self._table = table
        self._limits = limits
        self._periodic = Periodic("extractions", self.look, every_s=limits.every_s)
        self.start = self._periodic.start
        self.stop = self._periodic.stop

    async def look(self) -> None:
        """Submit what was left unsubmitted, then decide about every session that has gone quiet."""
        unsent, quiet = await self._table.unsent_and_quiet(quiet_s=self._limits.quiet_s)
        await each_alone("extraction", unsent, self.submit)
        await each_alone("quiet session", quiet, self.decide)
        due = await self._table.summaries_due(quiet_s=self._limits.quiet_s, every_s=self._limits.summary_every_s)
        await each_alone("summary of memories", due, self.decide_summary)

    async def decide(self, row: Record) -> None:
        """Give the unread turns of a quiet session to a job, and submit it; the first to decide does."""
        reach(Failpoint.ROUTER_EXTRACTION_BEFORE)
        tenant, user_id = row["tenant"], row["user_id"]

        def submission(session: Record, jobs: Sequence[str]) -> tuple[str, str]:
            session_id = session["session_id"]
            job = extraction_job(session_id, session["agent"], user_id, jobs, budget_usd=self._limits.budget_usd)
            return ids.extraction_job(tenant, session_id, user_id, jobs[-1]), job.to_wire().decode()

        decided = await self._table.decide(row, submission, quiet_s=self._limits.quiet_s)
        if decided is not None:
            reach(Failpoint.ROUTER_EXTRACTION_AFTER)
            await self.submit(decided)

    async def want_summary(self, tenant: str, job_id: str, user_id: str, agent: str) -> None:
        """Note that what is remembered of a job's user is to be summarised, by a job of this agent."""
        await self._table.want_summary(tenant, job_id, user_id, agent)

    async def decide_summary(self, row: Record) -> None:
        """Have a job summarise what is remembered of a user, and submit it; the first to decide does."""
        reach(Failpoint.ROUTER_EXTRACTION_BEFORE)
        tenant, user_id = row["tenant"], row["user_id"]

        def submission(due: Record) -> tuple[str, str]:
            job = summary_job(due["agent"], user_id, budget_usd=self._limits.budget_usd)
            return ids.summary_job(tenant, user_id, due["wanted_at"].isoformat()), job.to_wire().decode()

        quiet_s, every_s = self._limits.quiet_s, self._limits.summary_every_s
        decided = await self._table.decide_summary(row, submission, quiet_s=quiet_s, every_s=every_s)
        if decided is not None:
            reach(Failpoint.ROUTER_EXTRACTION_AFTER)
            await self.submit(decided)

    async def submit(self, row: Record) -> None:
        """Publish a decided job, and note that the bus has it; where it is full, a later look does it."""
        tenant, job_id = row["tenant"], row["job_id"]
        job = SubmitJob.from_wire(row["submission"].encode(), f"jobs.submit.{tenant}")
        try:
            await self._bus.publish(job.model_copy(update={"job_id": job_id}), msg_id=job_id)
        except Full as error:
            log.warning("put off", what="extraction", tenant=tenant, job=job_id, why=str(error))
            return
        reach(Failpoint.ROUTER_EXTRACTED_AFTER)
        # Only after the submission is stored: after a crash in between the same submission is sent again.
        await self._table.note_sent(tenant, job_id)


def extraction_job(
    session_id: str, agent: str, user_id: str, jobs: Sequence[str], *, budget_usd: Decimal | None
) -> SubmitJob:
    """Return the job that reads these jobs of a session for what lasts: of the session's agent, in its user's name."""
    options = _options(budget_usd)
    extract = Extraction(session_id=session_id, jobs=tuple(jobs))
    return SubmitJob(agent=agent, input=INPUT.format(session_id), user_id=user_id, options=options, extract=extract)


def summary_job(agent: str, user_id: str, *, budget_usd: Decimal | None) -> SubmitJob:
    """Return the job that summarises what is remembered of a user."""
    options = _options(budget_usd)
    return SubmitJob(agent=agent, input=SUMMARY_INPUT, user_id=user_id, options=options, summarize=Summarizing())


def _options(budget_usd: Decimal | None) -> JobOptions:
    # A budget that has no room now has some when it begins anew.
    return JobOptions(lane="batch", budget_usd=budget_usd, tags=(MEMORY_TAG,), at_cap="park")
