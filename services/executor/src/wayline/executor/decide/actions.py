"""What a job can need next: the closed vocabulary of `decide`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wayline.contracts.chat import Citation
from wayline.contracts.events import (
    AuxiliaryRequested,
    MemoryExtracted,
    MemorySummarized,
    ModelRequested,
    ToolCompleted,
)
from wayline.contracts.jobs import Failure, Route, Waiting
from wayline.contracts.models import ModelCard
from wayline.journal import Call
from wayline.routing import Cause


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the job's model for its next answer, after a wait where one is due."""

    step: int
    attempt: int
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NoteLost:
    """Write down that nobody saw a call end: its holder was killed, and the provider may bill it."""

    asked: ModelRequested | AuxiliaryRequested


@dataclass(frozen=True, slots=True)
class Classify:
    """Ask a flash model which of these types of task the job is: once, before its first call."""

    card: ModelCard
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compact:
    """Put a summary in the place of all messages between the first one and the last few."""

    card: ModelCard | None
    """Who is asked for it; None: nobody could be, and it is an outline."""
    kept: int


@dataclass(frozen=True, slots=True)
class Summarize:
    """Put a helper model's summary in the place of a long tool result, before any prompt holds it."""

    card: ModelCard
    call: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Have a helper model write the query of a follow-up anew, before it is searched for."""

    card: ModelCard | None
    """None: nobody is asked, and the query stays."""
    call: Call
    why: str = ""
    """Why nobody is asked."""


@dataclass(frozen=True, slots=True)
class Rerank:
    """Have a helper model choose the best of what a search found, before any prompt holds it."""

    card: ModelCard | None
    """None: nobody is asked, and the search's order stays."""
    done: ToolCompleted
    why: str = ""
    """Why nobody is asked."""


@dataclass(frozen=True, slots=True)
class ExtractFacts:
    """Have a helper model name the facts that last in what the user said in other jobs."""

    card: ModelCard


@dataclass(frozen=True, slots=True)
class SaveFacts:
    """Have the extracted facts judged and kept, by the rules by which an agent's are."""

    extracted: MemoryExtracted


@dataclass(frozen=True, slots=True)
class SummarizeFacts:
    """Have a helper model write summaries of what is remembered of the user."""

    card: ModelCard


@dataclass(frozen=True, slots=True)
class KeepSummaries:
    """Have summaries judged, and take the places of the facts that they stand for."""

    summarized: MemorySummarized


@dataclass(frozen=True, slots=True)
class Reroute:
    """Let another model go on, and tell it why where it has to look at an answer again."""

    route: Route
    cause: Cause | Literal["classification"]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Correct:
    """Tell the model what was wrong with its words."""

    text: str
    about: Literal["required_tools"] | None = None


@dataclass(frozen=True, slots=True)
class RunTools:
    """Calls that may run beside each other."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Ask people to approve calls, before anything of their step runs."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class EndDenied:
    """Tell the model of calls that were denied, or not approved in time."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class RunProgram:
    """A call of `run_code`: its program goes as far as it can without a person."""

    call: Call


@dataclass(frozen=True, slots=True)
class GiveOut:
    """Calls of tools that the job's caller runs."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class StartChildren:
    """Calls of `run_agent` that become jobs of their own."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class AwaitChildren:
    """Look whether the jobs of calls have ended, and wait for them where they have not."""

    calls: tuple[Call, ...]
    beside: Waiting | None = None
    """What else the job waits for: people who approve other calls of the step."""


@dataclass(frozen=True, slots=True)
class StopChildren:
    """Have the jobs of calls end: the job that started them is about to end."""

    calls: tuple[Call, ...]
    why: Literal["cancelled", "timeout"]


@dataclass(frozen=True, slots=True)
class SettleCalls:
    """End every call that was asked for and has no end in the log: the job is about to end."""

    calls: tuple[Call, ...]
    why: Literal["cancelled", "timeout", "diverged"]


@dataclass(frozen=True, slots=True)
class Resolve:
    """Write a human's decision on an unknown outcome into the ledger."""

    call: Call


@dataclass(frozen=True, slots=True)
class Park:
    """Park the job until what it waits for has come."""

    waiting: Waiting


@dataclass(frozen=True, slots=True)
class Complete:
    """End the job with an answer, whole or partial."""

    answer: str
    citations: tuple[Citation, ...] = ()
    partial: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """End the job without an answer."""

    error: Failure


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the job because it was cancelled."""

    reason: str
    by: str


End = Complete | Fail | Cancel
ChildrenAction = StartChildren | AwaitChildren | StopChildren
CallsAction = RunTools | GiveOut | RunProgram | AskApproval | EndDenied | SettleCalls | Resolve | ChildrenAction
AsideAction = Classify | Compact | Summarize | Rewrite | Rerank | ExtractFacts | SummarizeFacts
Action = CallModel | NoteLost | AsideAction | SaveFacts | KeepSummaries | Reroute | Correct | CallsAction | Park | End
