"""How far a job's model calls are after each event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.journal.state import Changes, Job


def _requested(job: Job, event: e.ModelRequested) -> Changes:
    return {"step": event.step, "attempt": event.attempt, "asked": event, "open": event, "failed": None}


def _completed(job: Job, event: e.ModelCompleted) -> Changes:
    return {"open": None, "attempt": 0, "failures": 0, "stop_reason": event.stop_reason}


def _failed(job: Job, event: e.ModelFailed) -> Changes:
    counted = event.error.code != e.LOST
    return {"open": None, "failed": event, "failures": job.model.failures + counted}


def _rerouted(job: Job, _: e.JobRerouted) -> Changes:
    return {"failed": None, "failures": 0}


def _aux_requested(job: Job, event: e.AuxiliaryRequested) -> Changes:
    return {"aux_open": event, "aux_calls": job.model.aux_calls + 1}


def _aux_ended(job: Job, _: e.AuxiliaryCompleted | e.AuxiliaryFailed) -> Changes:
    return {"aux_open": None}


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.ModelRequested: _requested,
    e.ModelCompleted: _completed,
    e.ModelFailed: _failed,
    e.JobRerouted: _rerouted,
    e.AuxiliaryRequested: _aux_requested,
    e.AuxiliaryCompleted: _aux_ended,
    e.AuxiliaryFailed: _aux_ended,
}
