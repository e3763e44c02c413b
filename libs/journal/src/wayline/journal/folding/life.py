"""How a job's life goes on: submitted, routed, claimed, parked and resumed, cancelled, ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.jobs import SECONDS_MAX, Decision, Status
from wayline.journal.state import Changes, Job

DECISIONS_MAX = 100
"""Decisions of people that are kept of one job beside its log."""


def _submitted(job: Job, event: e.JobSubmitted) -> Changes:
    return {
        "submitted": event.job,
        "reply_to": event.reply_to,
        "created_at": event.at,
        "schedule": event.schedule,
        "submitted_by": event.submitted_by,
    }


def _routed(job: Job, event: e.JobRouted) -> Changes:
    return {"deadline": _deadline(job.life.created_at, event.limits, job.life.rested)}


def _deadline(created_at: datetime | None, limits: e.Limits | None, rested: timedelta) -> datetime | None:
    if created_at is None or limits is None:
        return None
    return created_at + timedelta(seconds=min(limits.max_seconds + rested.total_seconds(), SECONDS_MAX))


def _claimed(job: Job, event: e.JobClaimed) -> Changes:
    return {"status": Status.RUNNING, "epoch": event.epoch}


def _model_requested(job: Job, _: e.ModelRequested) -> Changes:
    return {} if job.life.waited is None else {"waited": None}


def _decided(job: Job, event: e.DecisionMade) -> Changes:
    waited = job.life.waited
    budget = waited is not None and waited.why == "budget" and waited.wait_id == event.decision_id
    return {"unanswered": True} if budget else _answered_question(job, event)


def _answered_question(job: Job, event: e.DecisionMade) -> Changes:
    calls = (*job.tools.calls, *job.code.program_calls)
    call = next((one for one in calls if one.undecided and one.decision_id == event.decision_id), None)
    if call is None:
        return {}
    about = {"id": event.decision_id, "why": "needs_decision", "tool": call.meant.tool}
    return _with_decision(job, Decision.model_validate({**about, **_said(event), "decision": event.outcome}))


def _approval_decided(job: Job, event: e.ApprovalDecided) -> Changes:
    asked = next((one for one in job.tools.pending if one.approval_id == event.approval_id), None)
    if asked is None:
        return {}
    about = {"id": event.approval_id, "why": "approval" if asked.input is None else "input", "tool": asked.tool}
    about |= {"reason": event.reason, "hash": event.hash, "asked_at": asked.at}
    edited = event.arguments is not None
    return _with_decision(
        job, Decision.model_validate({**about, **_said(event), "decision": event.decision, "edited": edited})
    )


def _said(event: e.DecisionMade | e.ApprovalDecided) -> Changes:
    return {"by": event.by, "decided_at": event.at}


def _with_decision(job: Job, decision: Decision) -> Changes:
    return {"decisions": (*job.life.decisions, decision)[-DECISIONS_MAX:]}


def _parked(job: Job, event: e.JobParked) -> Changes:
    waiting = event.waiting
    changes: Changes = {"status": Status.PARKED, "waiting": waiting, "waited": waiting, "parked_at": event.at}
    return changes | {"scheduled": True} if waiting.ends else changes


def _resumed(job: Job, event: e.JobResumed) -> Changes:
    life = job.life
    parked = max(event.at - life.parked_at, timedelta()) if life.parked_at else timedelta()
    rested, step_rested = life.rested + parked, life.step_rested + parked
    deadline = _deadline(life.created_at, job.routing.limits, rested)
    return {"waiting": None, "parked_at": None, "rested": rested, "step_rested": step_rested, "deadline": deadline}


def _answered(job: Job, _: e.ModelCompleted) -> Changes:
    return {"step_rested": timedelta(), "delegated": timedelta()} if job.life.step_rested else {}


def _tool_completed(job: Job, event: e.ToolCompleted) -> Changes:
    """Count the time in which a child worked as the job's own, though it was parked; of children at once, the longest.

    While a child waited for a person, its parent's time stood as well.
    """
    life = job.life
    if event.child is None:
        return {}
    delegated = max(life.delegated, min(timedelta(seconds=event.child.worked_s), life.step_rested))
    rested = life.rested - (delegated - life.delegated)
    deadline = _deadline(life.created_at, job.routing.limits, rested)
    return {"delegated": delegated, "rested": rested, "deadline": deadline}


def _cancelling(job: Job, event: e.CancelRequested) -> Changes:
    return {"cancel": event}


def _raised(job: Job, _: e.BudgetRaised) -> Changes:
    return {"unanswered": False, "waited": None}


def _ended(status: Status) -> Callable[[Job, Any], Changes]:
    return lambda job, event: {"status": status, "ended": event, "waiting": None}


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.JobSubmitted: _submitted,
    e.JobRouted: _routed,
    e.JobClaimed: _claimed,
    e.ModelRequested: _model_requested,
    e.ModelCompleted: _answered,
    e.ToolCompleted: _tool_completed,
    e.DecisionMade: _decided,
    e.ApprovalDecided: _approval_decided,
    e.JobParked: _parked,
    e.JobResumed: _resumed,
    e.CancelRequested: _cancelling,
    e.BudgetRaised: _raised,
    e.JobCompleted: _ended(Status.COMPLETED),
    e.JobFailed: _ended(Status.FAILED),
    e.JobCancelled: _ended(Status.CANCELLED),
}
