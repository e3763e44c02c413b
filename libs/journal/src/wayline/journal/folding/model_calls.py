"""How far a job's model calls are after each event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.journal.state import Changes, Job

_WELL: Changes = {"failing_since": None, "waited_for": None}


def _requested(job: Job, event: e.ModelRequested) -> Changes:
    return {"step": event.step, "attempt": event.attempt, "asked": event, "open": event, "failed": None}


def _completed(job: Job, event: e.ModelCompleted) -> Changes:
    said = {"stop_reason": event.stop_reason, "refusal": event.refusal or ""}
    return {"open": None, "attempt": 0, "failures": 0, **said, **_WELL}


def _failed(job: Job, event: e.ModelFailed) -> Changes:
    counted = event.error.code != e.LOST
    since = (job.model.failing_since or event.at) if counted else job.model.failing_since
    return {"open": None, "failed": event, "failures": job.model.failures + counted, "failing_since": since}


def _rerouted(job: Job, _: e.JobRerouted) -> Changes:
    return {"failed": None, "failures": 0, **_WELL}


def _parked(job: Job, event: e.JobParked) -> Changes:
    if event.waiting.why != "provider":
        return {}
    return {"failing_since": job.model.failing_since or event.at, "waited_for": job.model.failures}


def _compacted(job: Job, _: e.ContextCompacted) -> Changes:
    """Let a prompt that was too long be asked again, now that it is shorter."""
    failed = job.model.failed
    return {"failed": None} if failed is not None and failed.error.code == "context_too_long" else {}


def _aux_requested(job: Job, event: e.AuxiliaryRequested) -> Changes:
    return {"aux_open": event, "aux_calls": job.model.aux_calls + 1}


def _aux_ended(job: Job, _: e.AuxiliaryCompleted | e.AuxiliaryFailed) -> Changes:
    return {"aux_open": None}


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.ModelRequested: _requested,
    e.ModelCompleted: _completed,
    e.ModelFailed: _failed,
    e.JobRerouted: _rerouted,
    e.JobParked: _parked,
    e.ContextCompacted: _compacted,
    e.AuxiliaryRequested: _aux_requested,
    e.AuxiliaryCompleted: _aux_ended,
    e.AuxiliaryFailed: _aux_ended,
}
