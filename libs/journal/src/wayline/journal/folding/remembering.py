"""How far a job is that remembers what its user said in other jobs, or summarises what is remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.journal.state import Changes, Job

PURPOSE = "memory"


def _asked(_: Job, event: e.AuxiliaryRequested) -> Changes:
    return {"begun": True} if event.purpose == PURPOSE else {}


def _failed(job: Job, event: e.AuxiliaryFailed) -> Changes:
    if event.purpose != PURPOSE:
        return {}
    state = job.remembering
    since = state.failing_since or event.at
    return {"begun": True, "failed": event, "failures": state.failures + 1, "failing_since": since}


def _parked(job: Job, event: e.JobParked) -> Changes:
    failures = job.remembering.failures
    return {"waited_for": failures} if failures and event.waiting.why == "provider" else {}


def _extracted(_: Job, event: e.MemoryExtracted) -> Changes:
    return {"extracted": event}


def _summarized(_: Job, event: e.MemorySummarized) -> Changes:
    return {"summarized": event}


def _saved(_: Job, event: e.MemorySaved) -> Changes:
    return {"saved": event}


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.AuxiliaryRequested: _asked,
    e.AuxiliaryFailed: _failed,
    e.JobParked: _parked,
    e.MemoryExtracted: _extracted,
    e.MemorySummarized: _summarized,
    e.MemorySaved: _saved,
}
