"""What a running or parked job is told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from wayline.contracts.base import Frozen, Message
from wayline.contracts.ids import JobId, new_id
from wayline.contracts.jobs.client_tools import RESULTS_MAX, ToolResult
from wayline.contracts.money import Dollars


class Cancel(Frozen):
    """The job shall stop."""

    type: Literal["cancel"] = "cancel"
    reason: str = ""
    by: str = ""


class Answer(Frozen):
    """A human's word on a tool call whose outcome is unknown."""

    type: Literal["answer"] = "answer"
    decision_id: str
    outcome: Literal["succeeded", "failed", "retry"]
    content: str = Field(default="", description="What the tool would have returned, where it succeeded.")
    by: str = ""


class RaiseBudget(Frozen):
    """The job may spend more."""

    type: Literal["budget"] = "budget"
    budget_usd: Dollars | None = Field(
        default=None, description="Its own budget from now on; None: as it is, but one it shares has room again."
    )
    by: str = ""


class Expire(Frozen):
    """The time for a wait is over."""

    type: Literal["expire"] = "expire"
    wait_id: str


class Steer(Frozen):
    """A later job of the session has words for this one; they stand in that job's log, and nowhere else."""

    type: Literal["steer"] = "steer"
    by: JobId = Field(description="The later job.")


class ToolResults(Frozen):
    """What the caller's own tools returned."""

    type: Literal["tool_results"] = "tool_results"
    results: tuple[ToolResult, ...] = Field(min_length=1, max_length=RESULTS_MAX)
    by: str = ""


Signalled = Annotated[Cancel | Answer | RaiseBudget | Expire | Steer | ToolResults, Field(discriminator="type")]


class Signal(Message, subject="signals.{tenant}.{job_id}"):
    """Something a running or parked job should know."""

    from_clients = True
    body_max = 8 * 1024

    job_id: str = Field(default="", exclude=True)
    signal: Signalled

    @property
    def msg_id(self) -> str:
        """Return a random id: one that could be guessed could be spent by another sender first."""
        return new_id("signal")


class DecideApproval(Message, subject="approvals.{tenant}.{job_id}"):
    """Approve or deny a tool call that waits. On a subject of its own: who may signal may not approve by that."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    terse = True
    from_clients = True
    body_max = 8 * 1024

    job_id: str = Field(default="", exclude=True)
    approval_id: str
    hash: str | None = Field(
        default=None,
        max_length=64,
        description="The `hash` of what was shown to the person: a decision about something else does not count.",
    )
    decision: Literal["approve", "deny"]
    arguments: dict[str, Any] | None = Field(
        default=None,
        description="What the tool is called with instead of what was asked for, or the answer to what its server "
        "asks; checked again.",
    )
    reason: str = Field(default="", description="What the model is told where the call is denied.")
    by: str = ""

    @property
    def msg_id(self) -> str:
        """Return a random id: one that could be guessed could be spent by another sender first."""
        return new_id("approval")


class WakeLater(Message, subject="later.{tenant}.{job_id}.{wait_id}"):
    """A schedule: at its time the server itself publishes `Due`. One subject a wait, so that repeats are harmless."""

    job_id: str = Field(default="", exclude=True)
    wait_id: str = Field(default="", exclude=True)


class Due(Message, subject="due.{tenant}.{job_id}.{wait_id}"):
    """A scheduled signal whose time has come."""

    job_id: str = Field(default="", exclude=True)
    wait_id: str = Field(default="", exclude=True)
