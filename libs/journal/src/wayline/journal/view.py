"""A job as the outside sees it."""

from __future__ import annotations

from wayline.contracts import ids
from wayline.contracts.events import JobCompleted
from wayline.contracts.jobs import JobView
from wayline.journal.state import Job


def view(job: Job) -> JobView:
    """Return the public shape of a folded job; the gateway adds links."""
    submitted = job.submitted
    done = job.ended if isinstance(job.ended, JobCompleted) else None
    return JobView(
        job_id=job.job_id,
        status=job.status,
        agent=submitted.agent if submitted else "",
        agent_version=job.agent_version,
        session_id=submitted.session_id if submitted else None,
        user_id=submitted.user_id if submitted else None,
        input=submitted.beginning() if submitted else None,
        route=job.route,
        steps=job.step,
        usage=job.usage,
        cost_usd=job.cost_usd,
        costs=job.costs,
        answer=done.answer if done else None,
        partial=done.partial if done else False,
        reason=job.reason,
        citations=done.citations if done else (),
        error=job.error,
        waiting_for=job.waiting,
        created_at=job.created_at,
        ended_at=job.ended_at,
        trace_id=ids.trace_id(job.tenant, job.job_id),
    )
