"""Where a tool call comes from, as the holder of its job's log knows: what a model says of it counts for nothing."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from wayline.contracts.base import Frozen

QUOTES_MAX = 40


class FoundQuote(Frozen):
    """A quote among a call's arguments that stands in the user's own messages."""

    quote: str
    job_id: str = Field(description="The job in which it was found, or the last of its session before.")
    seq: int = Field(default=0, ge=0, description="Of the event there; 0: in one of the messages before the job.")
    said_at: datetime | None = Field(default=None, description="When the user sent that message.")


class CallOrigin(Frozen):
    """The conversation that a call was made in."""

    agent: str | None = None
    session_id: str | None = None
    tainted_by: tuple[str, ...] = Field(default=(), description="Tools whose words of strangers the job had read.")
    quotes: tuple[FoundQuote, ...] = Field(default=(), max_length=QUOTES_MAX)
    of_assistant: tuple[str, ...] = Field(
        default=(), max_length=QUOTES_MAX, description="Texts among the arguments that only the assistant had said."
    )
    unsaid: tuple[str, ...] = Field(
        default=(), max_length=QUOTES_MAX, description="Texts of whose words too few were said in the conversation."
    )
