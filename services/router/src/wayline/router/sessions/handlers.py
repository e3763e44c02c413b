"""Shows sessions, and forgets those that are idle."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from datetime import datetime, timedelta

from wayline.contracts.errors import Conflict, NotFound, Reject
from wayline.contracts.sessions import (
    DeleteSession,
    GetSession,
    ListSessions,
    Session,
    SessionDeleted,
    SessionPage,
    SessionTurns,
)
from wayline.router.sessions.turn_table import TurnTable
from wayline.router.sessions.turns import Turns


class SessionHandlers:
    """Answers requests for sessions."""

    def __init__(self, table: TurnTable, turns: Turns) -> None:
        self._table = table
        self._turns = turns

    async def on_get(self, request: GetSession) -> SessionTurns:
        """Return a session with a page of its turns. Raises NotFound."""
        tenant, session_id = request.tenant, request.session_id
        row = await self._table.session(tenant, session_id)
        if row is None:
            raise NotFound("session", session_id)
        open_turn = await self._turns.first_open(tenant, session_id)
        turns = await self._table.turns(tenant, session_id, before=request.before, limit=request.limit + 1)
        page = tuple(turns[: request.limit])
        more = page[-1].number if page and len(turns) > request.limit else None
        return SessionTurns(**dict(row), busy_with=open_turn.job_id if open_turn else None, page=page, next_before=more)

    async def on_list(self, request: ListSessions) -> SessionPage:
        """Return a page of a tenant's sessions, the last used first."""
        after = _after(request.cursor) if request.cursor else None
        found = await self._table.sessions(
            request.tenant, agent=request.agent, user_id=request.user_id, after=after, limit=request.limit + 1
        )
        page = tuple(found[: request.limit])
        more = len(found) > request.limit
        return SessionPage(sessions=page, next_cursor=_cursor(page[-1]) if more else None)

    async def on_delete(self, request: DeleteSession) -> SessionDeleted:
        """Forget a session that is idle. Raises Conflict while a job of it has not ended."""
        await self._turns.first_open(request.tenant, request.session_id)
        deleted, open_job = await self._table.forget_session(request.tenant, request.session_id)
        if open_job is not None:
            raise busy(request.session_id, open_job)
        return SessionDeleted(deleted=deleted)


def busy(session_id: str, job_id: str) -> Conflict:
    """Return the error of what only an idle session takes."""
    return Conflict(
        f"session {session_id!r} is busy with job {job_id!r}: wait for its end, or cancel it", code="session_busy"
    )


def _cursor(last: Session) -> str:
    return urlsafe_b64encode(f"{last.updated_at.isoformat()} {last.session_id}".encode()).decode()


def _after(cursor: str) -> tuple[datetime, str]:
    try:
        at, _, session_id = urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        moment = datetime.fromisoformat(at)
    except (ValueError, NotBase64):
        moment, session_id = datetime.min, ""
    # In UTC, as our own cursors have it: another offset may lead to a year that no table takes.
    if moment.utcoffset() != timedelta(0) or not session_id or "\x00" in session_id:
        raise Reject(f"{cursor!r} is no cursor of this list: use `next_cursor` of a page", code="invalid_cursor")
    return moment, session_id
