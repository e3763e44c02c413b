"""A job as the outside sees it."""

from __future__ import annotations

from wayline.contracts import ids
from wayline.contracts.events import JobCompleted
from wayline.contracts.jobs import JobView, RunResult
from wayline.journal.costs import plus
from wayline.journal.failures import failure_fingerprint
from wayline.journal.state import Job


def view(job: Job) -> JobView:
    """Return the public shape of a folded job; the gateway adds links."""
    submitted = job.life.submitted
    done = job.life.ended if isinstance(job.life.ended, JobCompleted) else None
    return JobView(
        job_id=job.job_id,
        status=job.life.status,
        agent=submitted.agent if submitted else "",
        agent_version=job.routing.agent_version,
        agent_label=job.routing.agent_label,
        session_id=submitted.session_id if submitted else None,
        user_id=submitted.user_id if submitted else None,
        tags=(submitted.options.tags or ()) if submitted else (),
        input=submitted.beginning() if submitted else None,
        route=job.routing.route,
        steps=job.model.step,
        usage=job.money.usage,
        cost_usd=job.money.cost_usd,
        costs=job.money.costs,
        total_cost_usd=plus(job.money.cost_usd, job.family.children_usd),
        answer=done.answer if done else None,
        partial=done.partial if done else False,
        reason=job.life.reason,
        citations=done.citations if done else (),
        error=job.life.error,
        waiting_for=job.life.waiting,
        created_at=job.life.created_at,
        ended_at=job.life.ended_at,
        trace_id=ids.trace_id(job.tenant, job.job_id),
        origin=job.life.origin,
        schedule=job.life.schedule,
        handed_to=job.session.handed_to,
        parent=job.family.parent,
        children=job.family.children,
        fingerprint=failure_fingerprint(job),
        tainted_by=job.tools.taint,
        submitted_by=job.life.submitted_by,
        decisions=job.life.decisions,
    )


def run_result(job: Job) -> RunResult | None:
    """Return what is kept of a job as its user's newest run of its agent; None: it is no user's own."""
    submitted = job.life.submitted
    return RunResult.of(view(job)) if submitted and submitted.user_id else None
