"""Apply an event to a job's drafts: which handler takes which type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.journal import Job
from wayline.tracing.projection import life, model_calls, tool_calls
from wayline.tracing.projection.job_drafts import JobDrafts


def apply_event(drafts: JobDrafts, event: e.Event, job: Job) -> None:
    """Apply an event; `job` is the fold of all before it. A type that is not in the table changes nothing."""
    drafts.begin(event)
    handler = _HANDLERS.get(type(event))
    if handler:
        handler(drafts, event, job)


_HANDLERS: dict[type[e.Event], Callable[[JobDrafts, Any, Job], None]] = {
    e.JobSubmitted: life.submitted,
    e.JobRouted: life.routed,
    e.JobRerouted: life.rerouted,
    e.JobForked: life.forked,
    e.TaskClassified: life.classified,
    e.JobClaimed: life.claimed,
    e.JobHandedBack: life.handed_back,
    e.SessionContinued: life.continued,
    e.ModelRequested: model_calls.requested,
    e.ModelCompleted: model_calls.completed,
    e.ModelFailed: model_calls.failed,
    e.AuxiliaryRequested: model_calls.aux_requested,
    e.AuxiliaryCompleted: model_calls.aux_ended,
    e.AuxiliaryFailed: model_calls.aux_ended,
    e.ToolRequested: tool_calls.requested,
    e.ToolCompleted: tool_calls.completed,
    e.QueryRewritten: tool_calls.rewritten,
    e.PassagesReranked: tool_calls.reranked,
    e.ApprovalRequested: tool_calls.approval_requested,
    e.ApprovalDecided: tool_calls.approval_decided,
    e.DecisionMade: life.signalled,
    e.CancelRequested: life.signalled,
    e.BudgetRaised: life.signalled,
    e.JobParked: life.parked,
    e.JobResumed: life.resumed,
    e.JobCompleted: life.ended,
    e.JobFailed: life.ended,
    e.JobCancelled: life.ended,
}
