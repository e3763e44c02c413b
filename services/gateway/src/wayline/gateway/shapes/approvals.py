"""Bodies about decisions that jobs wait for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from wayline.gateway.shapes.body import TEXT_WITHOUT_NUL, Body


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
    expires_at: datetime | None
    decide: str = Field(description="Where the decision is posted.")


class WaitPage(BaseModel):
    """Decisions that jobs wait for, those of the newest jobs first."""

    approvals: tuple[Wait, ...]
    next_cursor: str | None = None
