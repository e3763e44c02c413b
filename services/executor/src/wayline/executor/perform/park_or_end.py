"""Parks a held job, or ends it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from wayline.chassis import Failpoint
from wayline.contracts import events as e
from wayline.contracts.jobs import SECONDS_MAX, RunJob
from wayline.executor.decide.actions import Cancel, Complete, Fail, Park
from wayline.executor.decide.paid_tools import kept_usd
from wayline.executor.decide.retry_or_reroute import awaited_model
from wayline.executor.hold.log_writer import Draft
from wayline.executor.perform.job_run import JobRun


async def park(run: JobRun, action: Park) -> tuple[Draft, ...]:
    """Park the job: all that the wait needs exists before the record says that it waits."""
    await run.writer.append(Failpoint.EXECUTOR_RESULT_BEFORE, Failpoint.EXECUTOR_RESULT_AFTER)
    wait_ends, waits = run.services.follow_up.wait_ends, action.waiting.ends
    await wait_ends.schedule(run.writer.job, waits)
    kept, writer = kept_usd(run.writer.job), run.writer
    last = run.writer.note(e.JobParked, waiting=action.waiting, signals_seen=writer.signals_seen, kept_usd=kept)
    await run.writer.append(Failpoint.EXECUTOR_PARK_BEFORE, Failpoint.EXECUTOR_PARK_AFTER)
    # Only now is it certain that the job is ours. Of a job that ends, all are withdrawn.
    await wait_ends.withdraw(run.writer.job, run.held.waited - waits.keys())
    model = awaited_model(writer.job)
    if action.waiting.why == "provider" and model is not None:
        ticket = RunJob(
            tenant=run.held.ticket.tenant, lane=writer.head.lane, job=writer.job.job_id, at=writer.head.sequence
        )
        run.services.gates.waits.remember(model, ticket)
    await run.services.follow_up.parked(run.writer.job.tenant, writer.head, last)
    return ()


async def end(run: JobRun, action: Complete | Fail | Cancel) -> tuple[Draft, ...]:
    """Write the terminal record with the job's sums, and do what follows it."""
    job = run.writer.job
    sums: dict[str, Any] = {"steps": job.model.step, "usage": job.money.usage, "cost_usd": job.money.cost_usd}
    match action:
        case Complete(answer, citations, partial, reason):
            run.writer.note(e.JobCompleted, answer=answer, citations=citations, partial=partial, reason=reason, **sums)
        case Fail(error):
            run.writer.note(e.JobFailed, error=error, **sums)
        case Cancel(reason, by):
            run.writer.note(e.JobCancelled, reason=reason, by=by, **sums)
    await run.writer.append(Failpoint.EXECUTOR_END_BEFORE, Failpoint.EXECUTOR_END_AFTER)
    run.services.histories.remember(run.writer.job)
    await run.services.follow_up.ended(run.writer.job)
    return ()


def expiry(run: JobRun) -> datetime:
    """Return until when a wait may last."""
    return min(datetime.now(UTC) + timedelta(seconds=run.services.decision_ttl_s), last_moment(run))


def last_moment(run: JobRun) -> datetime:
    """Return until when a job may wait at all."""
    created_at = run.writer.job.life.created_at
    assert created_at is not None
    return created_at + timedelta(seconds=SECONDS_MAX)
