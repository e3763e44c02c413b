"""Bodies about decisions that jobs wait for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from wayline.contracts.jobs import ApprovalCause, Decision, TaintSource
from wayline.contracts.tools import Effect
from wayline.gateway.shapes.body import ONE_LINE, TEXT_WITHOUT_NUL, Body


class ApprovalBody(Body):
    """A decision on a tool call that waits for a person."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"decision": "approve", "arguments": {"amount": 7}},
                {"decision": "deny", "reason": "Not before the invoice is checked."},
            ]
        }
    )

    decision: Literal["approve", "deny"]
    hash: Annotated[str, StringConstraints(max_length=64, pattern=ONE_LINE)] | None = Field(
        default=None, description="The `hash` that was shown to you: where another one is asked by now, it is a 409."
    )
    arguments: dict[str, Any] | None = Field(
        default=None,
        description="What the tool is called with instead, or the answer to what its server asks; checked against the "
        "schema.",
    )
    reason: Annotated[str, StringConstraints(max_length=2_000, pattern=TEXT_WITHOUT_NUL)] = Field(
        default="", description="What the model reads where the call is denied."
    )


class Wait(BaseModel):
    """Something that a parked job needs a person to decide."""

    job_id: str
    agent: str
    why: Literal["approval", "input", "needs_decision"] = Field(
        description="Whether a call may be made, what its tool's server wants to be told (`reason`), or what became "
        "of one whose outcome nobody knows."
    )
    id: str
    tool: str
    arguments: dict[str, Any]
    reason: str = ""
    input_schema: dict[str, Any] | None = Field(default=None, description="Of the answer that an `input` wants.")
    asked_at: datetime | None = Field(default=None, description="Null where that is not known.")
    cause: ApprovalCause | None = Field(
        default=None, description="Who wants the approval: the tool, the agent's policy, or what the job has read."
    )
    hash: str | None = Field(default=None, description="What a decision may be bound to: send it back with yours.")
    effect: Effect | None = Field(default=None, description="What a repeat of the call would do.")
    description: str = Field(default="", description="The beginning of the tool's own description.")
    program: str | None = Field(default=None, description="The call of `run_code` whose program asks for this one.")
    given: dict[str, Any] | None = Field(
        default=None, description="The arguments as the program gave them, where wrong types in them were mended."
    )
    user_id: str | None = None
    session_id: str | None = None
    input: str | None = Field(default=None, description="The beginning of the job's input.")
    tainted_by: TaintSource | None = Field(
        default=None,
        description="Where the job first read the words of strangers, also where the approval has another cause.",
    )
    expires_at: datetime | None
    decide: str = Field(description="Where the decision is posted.")


class Decided(Decision):
    """What became of a question, and of which job."""

    job_id: str
    agent: str
    user_id: str | None = None
    session_id: str | None = None
    input: str | None = Field(default=None, description="The beginning of the job's input.")


class WaitPage(BaseModel):
    """Decisions that jobs wait for, or that were made, those of the newest jobs first."""

    approvals: tuple[Wait, ...]
    decided: tuple[Decided, ...] = Field(default=(), description="With `decided=true`; `approvals` is empty then.")
    next_cursor: str | None = None
