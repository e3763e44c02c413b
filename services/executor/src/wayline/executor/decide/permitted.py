"""Before which actions a job asks whether it may run. Pure."""

from __future__ import annotations

from wayline.executor.decide import actions as a
from wayline.executor.decide.open_calls import begun_calls
from wayline.journal import Job

BEGIN_SOMETHING = (
    *(a.CallModel, a.Classify, a.Compact, a.Summarize, a.Rewrite, a.Rerank),
    *(a.ExtractFacts, a.SummarizeFacts, a.RunTools, a.StartChildren),
)
"""What costs money or acts. All else only ends, waits, or finishes what was begun."""


def begins_something(job: Job, action: a.Action | None) -> bool:
    """Return whether an action begins what a job that has to wait does not begin; calls under way are finished."""
    return isinstance(action, BEGIN_SOMETHING) and not begun_calls(job)
