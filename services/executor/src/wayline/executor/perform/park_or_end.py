"""Parks a held job, or ends it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.jobs import SECONDS_MAX
from wayline.executor.decide.actions import Cancel, Complete, Fail, Park
from wayline.executor.hold.held_job import HeldJob
from wayline.executor.perform.services import RunServices


def expiry(hands: RunServices, hold: HeldJob) -> datetime:
    """Until when a wait for somebody may last."""
    created_at = hold.pen.job.created_at
    assert created_at is not None
    soon = datetime.now(UTC) + timedelta(seconds=hands.decision_ttl_s)
    return min(soon, created_at + timedelta(seconds=SECONDS_MAX))


async def park(hands: RunServices, hold: HeldJob, action: Park) -> None:
    """Leave the job to whoever answers: all that the wait needs exists before the record says that it waits."""
    pen = hold.pen
    await pen.append(Failpoint.EXECUTOR_RESULT_BEFORE, Failpoint.EXECUTOR_RESULT_AFTER)
    await hands.follow_up.schedule(pen.job, action.waiting)
    kept = None if pen.job.held_usd is None else pen.job.spent_usd
    last = pen.note(e.JobParked, waiting=action.waiting, signals_seen=pen.signals_seen, kept_usd=kept)
    await pen.append(Failpoint.EXECUTOR_PARK_BEFORE, Failpoint.EXECUTOR_PARK_AFTER)
    await hands.follow_up.parked(hold.ticket.tenant, pen.head, last, hold.message)


async def end(hands: RunServices, hold: HeldJob, action: Complete | Fail | Cancel) -> None:
    """Write the terminal record with the job's sums, and do what follows it."""
    pen, job = hold.pen, hold.pen.job
    sums: dict[str, Any] = {"steps": job.step, "usage": job.usage, "cost_usd": job.cost_usd}
    match action:
        case Complete(answer, citations, partial, reason):
            pen.note(e.JobCompleted, answer=answer, citations=citations, partial=partial, reason=reason, **sums)
        case Fail(error):
            pen.note(e.JobFailed, error=error, **sums)
        case Cancel(reason, by):
            pen.note(e.JobCancelled, reason=reason, by=by, **sums)
    await pen.append(Failpoint.EXECUTOR_END_BEFORE, Failpoint.EXECUTOR_END_AFTER)
    await hands.follow_up.ended(pen.job, hold.message)
