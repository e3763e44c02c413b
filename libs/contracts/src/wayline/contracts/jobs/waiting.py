"""What a parked job waits for."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from wayline.contracts.base import Frozen
from wayline.contracts.tools import Effect

DESCRIPTION_SHOWN_MAX = 500
"""Characters of a tool's description that stand beside a question about it."""
TURN = "turn"
"""The `wait_id` of a job that waits for its turn in its session."""


ApprovalCause = Literal["tool", "agent", "tainted"]
"""Who asks for it: the tool's own definition, the agent's policy, or untrusted content that the job has read."""


class PendingApproval(Frozen):
    """A tool call that waits for a person's approval."""

    approval_id: str
    call: str
    tool: str
    arguments: dict[str, Any]
    why: ApprovalCause
    reason: str = ""
    expires_at: datetime
    asked_at: datetime | None = Field(default=None, description="Null: a version before asked.")
    hash: str = Field(default="", description="What a decision is bound to: definition, arguments and policy.")
    effect: Effect | None = Field(default=None, description="What a repeat of the call would do; null: not known.")
    description: str = Field(default="", description="The beginning of the tool's own description.")
    program: str | None = Field(default=None, description="The call of `run_code` whose program asks for this one.")
    given: dict[str, Any] | None = Field(
        default=None, description="The arguments as the program gave them, where wrong types in them were mended."
    )
    input_schema: dict[str, Any] | None = Field(
        default=None,
        description="Of the answer that the tool's server wants from a person, who is asked `reason`; None: whether "
        "the call may be made.",
    )


class Decision(Frozen):
    """What became of a question to people about a tool call."""

    id: str = Field(description="Of the approval, or of the question what became of the call.")
    why: Literal["approval", "input", "needs_decision"] = Field(
        description="Whether a call may be made, what its tool's server wants to be told, or what became of a call."
    )
    tool: str
    decision: Literal["approved", "denied", "succeeded", "failed", "retry", "expired"]
    by: str = Field(default="", description="The name of the key; empty: nobody decided in time.")
    reason: str = ""
    edited: bool = Field(default=False, description="Whether it was approved with other arguments.")
    hash: str = Field(default="", description="Of definition, approved arguments and policy; empty where denied.")
    asked_at: datetime | None = None
    decided_at: datetime


class PendingToolCall(Frozen):
    """A call of a tool of the job's caller, whose result the job waits for."""

    key: str = Field(description="What its result names it by.")
    step: int
    call: str
    tool: str
    arguments: dict[str, Any]
    expires_at: datetime

    @property
    def wait_id(self) -> str:
        """Return the id of the wait for it."""
        return result_wait_id(self.step, self.call)


def result_wait_id(step: int, call: str) -> str:
    """Return the id of the wait for the result of a call."""
    return f"result-{step}-{call}"


class Waiting(Frozen):
    """What a parked job waits for."""

    why: Literal[
        "needs_decision", "budget", "turn", "approval", "children", "provider", "tool_results", "pause", "limit"
    ]
    wait_id: str
    after: str | None = Field(
        default=None, description="The job of its session before it, where it waits for its turn."
    )
    into: str | None = Field(
        default=None, description="The running job that shall take its words, where it waits only until that is known."
    )
    question: str = ""
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    expires_at: datetime | None = None
    approvals: tuple[PendingApproval, ...] = Field(
        default=(), description="Every call of the step that waits for an approval, each with its id."
    )
    children: tuple[str, ...] = Field(
        default=(), description="The jobs that it started and that had not ended; it goes on when all of them have."
    )

    tool_calls: tuple[PendingToolCall, ...] = Field(
        default=(), description="Every call of the step whose result its caller has to give."
    )
    budget: str | None = Field(
        default=None,
        description="The tenant's budget that has no room for it, where it waits for one; null: its own has none, "
        "which can be raised.",
    )

    @property
    def ends(self) -> dict[str, datetime]:
        """Return when each of its waits is over, by their ids."""
        each = {one.approval_id: one.expires_at for one in self.approvals}
        each |= {one.wait_id: one.expires_at for one in self.tool_calls}
        return each if self.expires_at is None else {self.wait_id: self.expires_at, **each}

    @property
    def is_named_once(self) -> bool:
        """Return whether no later wait of the job has the id of one of these."""
        return self.why in {"approval", "needs_decision", "provider", "tool_results"}
