"""Which model a job is with after each event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.journal.state import Changes, Job


def _routed(job: Job, event: e.JobRouted) -> Changes:
    return {
        "agent_version": event.agent_version,
        "agent_label": event.agent_label,
        "config": event.config,
        "route": event.route,
        "limits": event.limits,
        "candidates": event.candidates,
        "agents": event.agents,
        "tried": (event.route.name,),
    }


def _rerouted(job: Job, event: e.JobRerouted) -> Changes:
    return {
        "route": event.route,
        "tried": (*job.routing.tried, event.route.name),
        "escalated": job.routing.escalated or event.cause == "escalation",
    }


def _aux_requested(job: Job, event: e.AuxiliaryRequested) -> Changes:
    return {"classified": True} if event.purpose == "classification" else {}


def _classified(job: Job, event: e.TaskClassified) -> Changes:
    route = job.routing.route and job.routing.route.model_copy(update={"task_type": event.task_type})
    return {"classified": True, "route": route}


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.JobRouted: _routed,
    e.JobRerouted: _rerouted,
    e.AuxiliaryRequested: _aux_requested,
    e.TaskClassified: _classified,
}
