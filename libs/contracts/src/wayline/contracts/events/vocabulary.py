"""Every type of event, and how one is read."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field

from wayline.contracts.events.code import CodeCompleted, CodeSuspended
from wayline.contracts.events.context import (
    ContextCompacted,
    ContextInjected,
    MemoryInjected,
    PassagesReranked,
    QueryRewritten,
    ResultSummarized,
)
from wayline.contracts.events.event import Event
from wayline.contracts.events.life import (
    BudgetRaised,
    CancelRequested,
    JobCancelled,
    JobClaimed,
    JobCompleted,
    JobFailed,
    JobForked,
    JobHandedBack,
    JobParked,
    JobResumed,
    JobSubmitted,
)
from wayline.contracts.events.memory import (
    ExtractionAsked,
    MemoryExtracted,
    MemorySaved,
    MemorySummarized,
    SummaryAsked,
)
from wayline.contracts.events.model_calls import (
    AuxiliaryCompleted,
    AuxiliaryFailed,
    AuxiliaryRequested,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
)
from wayline.contracts.events.routes import JobRerouted, JobRouted, TaskClassified
from wayline.contracts.events.sessions import SessionContinued, SessionHandedOver, SessionSteered
from wayline.contracts.events.tool_calls import (
    ApprovalDecided,
    ApprovalRequested,
    ChildStarted,
    ClientToolsGiven,
    DecisionMade,
    ToolCompleted,
    ToolRequested,
    ToolsDiscovered,
    ToolUnknown,
)

AnyEvent = Annotated[
    JobSubmitted
    | JobRouted
    | JobRerouted
    | JobForked
    | JobClaimed
    | JobHandedBack
    | SessionContinued
    | SessionSteered
    | SessionHandedOver
    | ModelRequested
    | ModelCompleted
    | ModelFailed
    | AuxiliaryRequested
    | AuxiliaryCompleted
    | AuxiliaryFailed
    | TaskClassified
    | ContextInjected
    | MemoryInjected
    | ExtractionAsked
    | MemoryExtracted
    | SummaryAsked
    | MemorySummarized
    | MemorySaved
    | ContextCompacted
    | ResultSummarized
    | QueryRewritten
    | PassagesReranked
    | ToolsDiscovered
    | ToolRequested
    | ClientToolsGiven
    | ChildStarted
    | ToolCompleted
    | ToolUnknown
    | DecisionMade
    | ApprovalRequested
    | ApprovalDecided
    | CodeSuspended
    | CodeCompleted
    | JobParked
    | JobResumed
    | CancelRequested
    | BudgetRaised
    | JobCompleted
    | JobFailed
    | JobCancelled,
    Field(discriminator="type"),
]

EVENT_TYPES: dict[str, type[Event]] = {
    member.model_fields["type"].default: member for member in get_args(get_args(AnyEvent)[0])
}
TERMINAL_TYPES = frozenset({"job.completed", "job.failed", "job.cancelled"})


class Unknown(Event):
    """An event type that this build does not know: a reader passes over it, an executor does not claim its job."""


def read_event(value: dict[str, Any]) -> Event:
    """Read one event from its decoded JSON, without fields that only a newer build knows; an unknown type is `Unknown`.

    Raises pydantic's ValidationError.
    """
    kind = EVENT_TYPES.get(value.get("type", ""), Unknown)
    # What `model_validate` calls, without its own frame: a log has thousands of events.
    return kind.__pydantic_validator__.validate_python(value, extra="ignore")
