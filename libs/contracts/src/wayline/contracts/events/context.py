"""What the platform itself changes in a conversation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wayline.contracts.chat import NoteMessage
from wayline.contracts.events.event import Event


class ContextInjected(Event):
    """The platform told the model something; it stays where it was said."""

    type: Literal["context.injected"] = "context.injected"
    note: NoteMessage
    about: Literal["required_tools"] | None = Field(
        default=None, description="What an answer lacked that was sent back; None: something else is told."
    )


class ContextCompacted(Event):
    """A summary took the place of all messages between the first one and the last few."""

    type: Literal["context.compacted"] = "context.compacted"
    note: NoteMessage
    kept: int = Field(ge=0, description="Messages at the end that stay as they are.")


class ResultSummarized(Event):
    """A helper model's summary took the place of a long tool result, before any prompt held it."""

    type: Literal["result.summarized"] = "result.summarized"
    step: int
    call: str
    content: str = Field(description="What the model is shown; the whole result is in the call's `tool.completed`.")
