"""Claims jobs for this process: reads and folds their logs, and begins the record that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from wayline.chassis import Failpoint
from wayline.chassis.draining import process_name
from wayline.contracts import events as e
from wayline.contracts.base import explain, slim_all
from wayline.contracts.errors import Retry
from wayline.executor.adapters.session_histories import Continuation, SessionHistories
from wayline.executor.decide.session_history import lost_note
from wayline.executor.hold.claim import Ticket, reading_may_kill, wrote_nothing
from wayline.executor.hold.log_writer import LogWriter
from wayline.journal import Fenced, Head, Job, JobLog, Money, Shared, State, fold, unknown_types


class Unreadable(Exception):
    """A log that a newer build has written to."""


class JobClaims:
    """Takes jobs over from their last holders."""

    def __init__(self, histories: SessionHistories) -> None:
        self._histories = histories
        self._name = process_name()
        self._shared = Shared()

    async def claim(self, jobs: JobLog, head: Head, ticket: Ticket, attempt: int) -> LogWriter | None:
        """Return the writer of a job that is ours by its next record; None: another executor has claimed it meanwhile.

        Raises Unreadable and Retry; a claim that is in the log already has then been taken back.
        """
        # What may kill comes next: such a claim has to count, whatever becomes of us.
        early = await self._claimed(jobs, head, ticket, attempt) if reading_may_kill(head, ticket) else None
        try:
            events = await self._read(jobs, head)
            if early is None and wrote_nothing(head, ticket):
                early = await self._claimed(jobs, head, ticket, attempt)
            job = _folded(events)
            past = await self._histories.past(job)
        except (Unreadable, Retry) as error:
            if early is not None and not await _handed_back(early[0], str(error)):
                return None
            raise
        if early is not None:
            writer = LogWriter(jobs, early[0].head, fold(early[1], job))
        else:
            writer, _ = self.begin(jobs, head, job, ticket, attempt)
        if past is not None:
            _go_on_with(writer, past)
        return writer

    async def _read(self, jobs: JobLog, head: Head) -> list[e.Event]:
        """Read all that happened to a job until now. Raises Unreadable where this build does not understand it all."""
        records = [head.values] if head.state is State.NEW else await jobs.records(head.sequence)
        unknown = unknown_types([value for record in records for value in record])
        if unknown:
            raise Unreadable(f"it has events of types {sorted(unknown)}")
        try:
            return self._shared.events(value for record in records for value in record)
        except ValidationError as error:
            raise Unreadable(f"its log cannot be read: {explain(error)}") from None

    async def _claimed(self, jobs: JobLog, head: Head, ticket: Ticket, attempt: int) -> tuple[LogWriter, list[e.Event]]:
        """Claim by a record of its own, written from the last record alone."""
        writer, claim = self.begin(jobs, head, unread(head, ticket), ticket, attempt)
        await writer.append(Failpoint.EXECUTOR_CLAIM_BEFORE, Failpoint.EXECUTOR_CLAIM_AFTER)
        return writer, claim

    def begin(
        self, jobs: JobLog, head: Head, job: Job, ticket: Ticket, attempt: int
    ) -> tuple[LogWriter, list[e.Event]]:
        """Return a log writer whose first record claims the job, and the events that say so."""
        writer = LogWriter(jobs, head, job)
        claim: dict[str, Any] = {"owner": ticket.owner, "attempt": attempt, "epoch": head.epoch + 1}
        writer.claim(**claim)
        noted: list[e.Event] = [writer.note(e.JobClaimed, executor=self._name, **claim)]
        if head.state is State.PARKED:
            noted.append(writer.note(e.JobResumed))
        return writer, noted


def _folded(events: Sequence[e.Event]) -> Job:
    """Return the job that a log folds to, in as little memory as a thousand like it should take."""
    job = fold(events)
    slim_all((job.life.submitted, job.conversation.messages))
    return job


async def _handed_back(writer: LogWriter, why: str) -> bool:
    """Take back a claim that leads to nothing here; False: another executor has the job already."""
    writer.note(e.JobHandedBack, reason=why)
    try:
        await writer.append(Failpoint.EXECUTOR_HAND_BACK_BEFORE, Failpoint.EXECUTOR_HAND_BACK_AFTER)
    except Fenced:
        return False
    return True


def _go_on_with(writer: LogWriter, past: Continuation) -> None:
    """Pin what a job goes on with in its session, where that is not done, and hold the messages beside the job."""
    if past.handed_to is not None:
        writer.note(e.SessionHandedOver, to=past.handed_to)
    if past.pinned is not None:
        continued = writer.note(e.SessionContinued, **past.pinned)
        if continued.lost is not None:
            writer.note(e.ContextInjected, note=lost_note(continued.lost, continued.context))
    writer.hold_history(past.history)


def unread(head: Head, ticket: Ticket) -> Job:
    """Return what a log's last record says by itself: enough to write on."""
    return Job(job_id=ticket.job_id, tenant=ticket.tenant, seq=head.seq, money=Money(cost_usd=head.cost))
