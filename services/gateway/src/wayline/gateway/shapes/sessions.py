"""Bodies about sessions."""

from __future__ import annotations

from pydantic import BaseModel, Field

from wayline.contracts.jobs import JobView
from wayline.contracts.sessions import Session
from wayline.contracts.working_context import WorkingContext


class TurnView(BaseModel):
    """A job as a turn of its session."""

    number: int
    after: str | None = Field(description="The job before it; null: the first.")
    job: JobView


class SessionView(Session):
    """A session with some of its turns, newest first; `next_before` asks for more."""

    busy_with: str | None = Field(description="The first job of it that has not ended; null: it is idle.")
    page: tuple[TurnView, ...]
    next_before: int | None
    context: WorkingContext = Field(
        description="What it is about: the entities that its tools declared, and its tools, as its last job knows them."
    )
