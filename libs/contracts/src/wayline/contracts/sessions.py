"""Sessions: conversations, of which each job is a turn."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from wayline.contracts.base import Frozen, Request

SESSION_ID_MAX = 128
TURNS_PAGE_MAX = 200


class SessionTurn(Frozen):
    """A job as a turn of its session."""

    job_id: str
    number: int = Field(ge=1)
    after: str | None = Field(default=None, description="The job before it; None: the first.")
    taken_at: datetime = Field(description="When the job was admitted.")
    ended_at: datetime | None = Field(default=None, description="When its end was noticed; None: not yet.")


class Session(Frozen):
    """A conversation: jobs that run one at a time, each after the one before it."""

    session_id: str
    agent: str = Field(description="Of its newest turn.")
    user_id: str | None = Field(default=None, description="Of its newest turn.")
    turns: int = Field(ge=0, description="How many jobs it has had.")
    tail_job: str | None = Field(default=None, description="The newest turn's job.")
    created_at: datetime
    updated_at: datetime = Field(description="When its newest turn was taken.")


class SessionTurns(Session):
    """A session with some of its turns, newest first; `next_before` asks for more."""

    busy_with: str | None = Field(default=None, description="The first job of it that has not ended; None: it is idle.")
    page: tuple[SessionTurn, ...] = ()
    next_before: int | None = None


class SessionPage(Frozen):
    """Some of a tenant's sessions, the last used first; `next_cursor` asks for more."""

    sessions: tuple[Session, ...]
    next_cursor: str | None = None


class SessionDeleted(Frozen):
    """Whether there was such a session."""

    deleted: bool


class ListSessions(Request, subject="sessions.list.{tenant}", replies=SessionPage):
    """Page through a tenant's sessions, the last used first."""

    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = Field(default=None, max_length=500)
    agent: str | None = None
    user_id: str | None = None


class GetSession(Request, subject="sessions.get.{tenant}", replies=SessionTurns):
    """Ask for a session and some of its turns."""

    session_id: str = Field(max_length=SESSION_ID_MAX)
    limit: int = Field(default=50, ge=0, le=TURNS_PAGE_MAX)
    before: int | None = Field(default=None, ge=1, description="Only turns with a lower number.")


class DeleteSession(Request, subject="sessions.delete.{tenant}", replies=SessionDeleted):
    """Forget a session that is idle: its next job begins anew. The logs of its jobs stay."""

    session_id: str = Field(max_length=SESSION_ID_MAX)
