"""Bodies about dead letters."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from wayline.gateway.paging import Paged
from wayline.gateway.shapes.body import ONE_LINE, Body


class DeadLetter(BaseModel):
    """A message that could not be handled, and why."""

    sequence: int
    at: datetime | None
    code: str
    reason: str
    stream: str
    consumer: str
    subject: str
    deliveries: int
    bytes: int
    fingerprint: str = Field(description="The same for all that could not be handled for one cause.")


class DeadLetterBody(DeadLetter):
    """A dead letter with its headers and its body."""

    headers: dict[str, str]
    text: str | None = Field(description="The body, where it is text.")
    base64: str | None = Field(description="The body, where it is not.")
    truncated: bool


class DeadLetterPage(BaseModel):
    """Some of the dead letters; `next_cursor` asks for more."""

    dead_letters: tuple[DeadLetter, ...] = Field(description="Newest first.")
    next_cursor: str | None = None


class DismissLetterBody(Body):
    """Why a dead letter needs nothing more."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "a typo; submitted again as job order-2"}]})

    reason: Annotated[str, StringConstraints(min_length=1, max_length=1_000, pattern=ONE_LINE)]


class DismissedLetter(BaseModel):
    """A dead letter that was dismissed: what it was, why, by whom. Its body is gone."""

    sequence: int
    code: str
    subject: str
    letter_reason: str = Field(description="Why the message could not be handled.")
    reason: str = Field(description="Why it was dismissed.")
    dismissed_by: str
    dismissed_at: datetime


class DismissedLetterList(Paged):
    """A page of the dead letters that were dismissed in the last 30 days, newest first."""

    dismissed: tuple[DismissedLetter, ...]
