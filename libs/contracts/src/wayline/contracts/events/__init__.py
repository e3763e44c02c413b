"""Facts: the closed vocabulary of a job's log.

Every event says which job and where in its log (`seq`, 1..n without gaps), when, and on which span it stands.
Add a type when something true is missing; never give one a second meaning.
"""

from wayline.contracts.events.context import ContextCompacted, ContextInjected
from wayline.contracts.events.event import Event, SpanRef
from wayline.contracts.events.life import (
    BudgetRaised,
    CancelRequested,
    Ended,
    JobCancelled,
    JobClaimed,
    JobCompleted,
    JobFailed,
    JobHandedBack,
    JobParked,
    JobResumed,
    JobSubmitted,
)
from wayline.contracts.events.model_calls import (
    LOST,
    AuxiliaryCompleted,
    AuxiliaryFailed,
    AuxiliaryRequested,
    Bounds,
    CacheBreak,
    ModelCompleted,
    ModelFailed,
    ModelRequested,
    Purpose,
    Segment,
)
from wayline.contracts.events.routes import (
    Away,
    Candidates,
    JobRerouted,
    JobRouted,
    Limits,
    Observed,
    TaskClassified,
    ToolsObserved,
    Warm,
)
from wayline.contracts.events.sessions import HistoryEnd, SessionCall, SessionContinued
from wayline.contracts.events.tool_calls import (
    ApprovalDecided,
    ApprovalRequested,
    DecisionMade,
    ToolCompleted,
    ToolRequested,
    ToolsDiscovered,
    ToolUnknown,
)
from wayline.contracts.events.vocabulary import EVENT_TYPES, TERMINAL_TYPES, AnyEvent, Unknown, read_event

__all__ = [
    "EVENT_TYPES",
    "LOST",
    "TERMINAL_TYPES",
    "AnyEvent",
    "ApprovalDecided",
    "ApprovalRequested",
    "AuxiliaryCompleted",
    "AuxiliaryFailed",
    "AuxiliaryRequested",
    "Away",
    "Bounds",
    "BudgetRaised",
    "CacheBreak",
    "CancelRequested",
    "Candidates",
    "ContextCompacted",
    "ContextInjected",
    "DecisionMade",
    "Ended",
    "Event",
    "HistoryEnd",
    "JobCancelled",
    "JobClaimed",
    "JobCompleted",
    "JobFailed",
    "JobHandedBack",
    "JobParked",
    "JobRerouted",
    "JobResumed",
    "JobRouted",
    "JobSubmitted",
    "Limits",
    "ModelCompleted",
    "ModelFailed",
    "ModelRequested",
    "Observed",
    "Purpose",
    "Segment",
    "SessionCall",
    "SessionContinued",
    "SpanRef",
    "TaskClassified",
    "ToolCompleted",
    "ToolRequested",
    "ToolUnknown",
    "ToolsDiscovered",
    "ToolsObserved",
    "Unknown",
    "Warm",
    "read_event",
]
