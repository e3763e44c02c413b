"""A job as a turn of its session: when its turn has come, and what it goes on with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.journal.state import Changes, Job


def _submitted(job: Job, event: e.JobSubmitted) -> Changes:
    return {} if event.turn is None else {"turn": event.turn}


def _continued(job: Job, event: e.SessionContinued) -> Changes:
    return {"continued": event, "summarised": False}


def _compacted(job: Job, event: e.ContextCompacted) -> Changes:
    return {} if job.session.history_end is None else {"summarised": True}


def _requested(job: Job, _: e.ModelRequested) -> Changes:
    steering = job.conversation.steering
    return {"steered_by": (*job.session.steered_by, *(event.by for event in steering))} if steering else {}


def _parked(_: Job, event: e.JobParked) -> Changes:
    return {} if event.waiting.into is None else {"into": event.waiting.into}


def _handed_over(_: Job, event: e.SessionHandedOver) -> Changes:
    return {"handed_to": event.to}


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.JobSubmitted: _submitted,
    e.SessionContinued: _continued,
    e.ContextCompacted: _compacted,
    e.ModelRequested: _requested,
    e.JobParked: _parked,
    e.SessionHandedOver: _handed_over,
}
