"""Which event is drawn how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.journal import Job
from wayline.tracing.drawing import life, model_calls, tool_calls
from wayline.tracing.drawing.canvas import Canvas


def draw(canvas: Canvas, event: e.Event, job: Job) -> None:
    """Take in an event; `job` is the fold of all before it. One that is not in the table leaves no trace."""
    canvas.begin(event)
    meaning = _MEANING.get(type(event))
    if meaning:
        meaning(canvas, event, job)


_MEANING: dict[type[e.Event], Callable[[Canvas, Any, Job], None]] = {
    e.JobSubmitted: life.submitted,
    e.JobRouted: life.routed,
    e.JobRerouted: life.rerouted,
    e.TaskClassified: life.classified,
    e.JobClaimed: life.claimed,
    e.JobHandedBack: life.handed_back,
    e.ModelRequested: model_calls.requested,
    e.ModelCompleted: model_calls.completed,
    e.ModelFailed: model_calls.failed,
    e.AuxiliaryRequested: model_calls.aux_requested,
    e.AuxiliaryCompleted: model_calls.aux_ended,
    e.AuxiliaryFailed: model_calls.aux_ended,
    e.ToolRequested: tool_calls.requested,
    e.ToolCompleted: tool_calls.completed,
    e.DecisionMade: life.told,
    e.CancelRequested: life.told,
    e.BudgetRaised: life.told,
    e.JobParked: life.parked,
    e.JobResumed: life.resumed,
    e.JobCompleted: life.ended,
    e.JobFailed: life.ended,
    e.JobCancelled: life.ended,
}
