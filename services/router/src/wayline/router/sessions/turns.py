"""Sessions in Postgres: the order of their jobs, and whose turn it is.

The tables say the order; whether a job has ended is decided by its log. So a row that was not marked in time delays
no job: the next router that looks finds the end in the log, and marks it.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from datetime import datetime
from typing import NamedTuple

import structlog

from wayline.chassis import Bus, Failpoint, reach
from wayline.contracts.errors import Conflict, Full, NotFound, Reject
from wayline.contracts.jobs import TURN, Cancel, RunJob, Signal, Steer, Turn
from wayline.contracts.sessions import (
    DeleteSession,
    GetSession,
    ListSessions,
    Session,
    SessionDeleted,
    SessionPage,
    SessionTurn,
    SessionTurns,
)
from wayline.journal import Head, JobLog, State
from wayline.router.ticket_lanes import TicketLanes
from wayline.store import Store

log = structlog.get_logger()

OPEN_AT_ONCE = 16
"""Turns that are read in one statement when the first one that has not ended is looked for."""


class OpenTurn(NamedTuple):
    """A turn whose job has not ended."""

    job_id: str
    head: Head | None
    """None: its log has not been begun."""


class Turns:
    """The turns of sessions."""

    def __init__(self, bus: Bus, store: Store, ticket_lanes: TicketLanes, *, waiting_max: int) -> None:
        self._bus = bus
        self._ticket_lanes = ticket_lanes
        self._store = store
        self._waiting_max = waiting_max

    async def turn_of(self, tenant: str, job_id: str) -> Turn | None:
        """Return the turn that a job has taken."""
        row = await self._store.fetchrow(tenant, self._store.sql.turn_of, tenant, job_id)
        return Turn(number=row["number"], after=row["after"]) if row else None

    async def first_open(self, tenant: str, session_id: str, *, before: int | None = None) -> OpenTurn | None:
        """Return the first turn whose job has not ended; turns that are found to have ended are marked on the way."""
        while True:
            rows = await self._store.fetch(tenant, self._store.sql.open_turns, tenant, session_id, before, OPEN_AT_ONCE)
            ended: list[str] = []
            found = None
            for row in rows:
                head = await JobLog(self._bus, tenant, row["job_id"]).last()
                if head is None or head.state is not State.ENDED:
                    found = OpenTurn(row["job_id"], head)
                    break
                ended.append(row["job_id"])
            if ended:
                await self._store.fetch(tenant, self._store.sql.end_turns, tenant, ended)
            if found is not None or len(rows) < OPEN_AT_ONCE:
                return found

    async def wake_next(self, tenant: str, session_id: str) -> None:
        """Queue the first job of a session that has not ended, where it is parked until its turn comes.

        A job whose log has not been begun looks for itself, once it has one.
        """
        first = await self.first_open(tenant, session_id)
        if first is None or first.head is None or not waits_for_turn(first.head):
            return
        reach(Failpoint.ROUTER_TURN_BEFORE)
        wake = RunJob(tenant=tenant, lane=first.head.lane, job=first.job_id, at=first.head.sequence)
        ticket = await self._ticket_lanes.queue(wake)
        await self._bus.publish(ticket, msg_id=ticket.msg_id)
        reach(Failpoint.ROUTER_TURN_AFTER)

    async def end(self, tenant: str, job_id: str, *, ran: bool = True) -> None:
        """Mark the end of a job, and wake the next of its session; a job of no session changes nothing.

        Where it never `ran`, jobs behind it may have waited for its log to steer in their order.
        """
        rows = await self._store.fetch(tenant, self._store.sql.end_turns, tenant, [job_id])
        for row in rows:
            if row["session_id"] is not None:
                if not ran:
                    await self.steer(tenant, row["session_id"])
                await self.wake_next(tenant, row["session_id"])

    async def steer(self, tenant: str, session_id: str) -> None:
        """Tell running jobs of a session which later ones have words for them, in the order of their turns.

        One whose log has not been begun stops those behind it; its own router goes on from it.
        """
        for row in await self._store.fetch(tenant, self._store.sql.steering_turns, tenant, session_id):
            job_id = row["job_id"]
            head = await JobLog(self._bus, tenant, job_id).last()
            if head is None:
                return
            into = head.values[-1]["waiting"].get("into") if waits_for_turn(head) else None
            if into is not None and not await self._tell(tenant, into, by=job_id):
                return
            await self._store.execute(tenant, self._store.sql.steered, tenant, job_id)

    async def _tell(self, tenant: str, job_id: str, *, by: str) -> bool:
        """Tell a running job of a later one's words; False: it takes no more signals, and they wait for a turn."""
        reach(Failpoint.ROUTER_STEER_BEFORE)
        try:
            signal = Signal(tenant=tenant, job_id=job_id, signal=Steer(by=by))
            await self._bus.publish(signal, msg_id=f"{tenant}/{by}:steer")
        except Full as error:
            log.warning("a job's words wait for their turn", tenant=tenant, job=by, into=job_id, why=str(error))
            return False
        reach(Failpoint.ROUTER_STEER_AFTER)
        return True

    async def interrupt(self, tenant: str, session_id: str, turn: Turn, *, by: str) -> None:
        """Cancel every job of a session before a turn, the newest first, so that none of them begins meanwhile."""
        rows = await self._store.fetch(
            tenant, self._store.sql.open_turns, tenant, session_id, turn.number, self._waiting_max + 1
        )
        for row in reversed(rows):
            cancel = Cancel(reason=f"interrupted by job {by}", by="session")
            signal = Signal(tenant=tenant, job_id=row["job_id"], signal=cancel)
            await self._bus.publish(signal, msg_id=f"{tenant}/{by}:interrupt:{row['job_id']}")

    async def on_get(self, request: GetSession) -> SessionTurns:
        """Return a session with a page of its turns. Raises NotFound."""
        tenant, session_id = request.tenant, request.session_id
        row = await self._store.fetchrow(tenant, self._store.sql.get_session, tenant, session_id)
        if row is None:
            raise NotFound("session", session_id)
        open_turn = await self.first_open(tenant, session_id)
        turns = await self._store.fetch(
            tenant, self._store.sql.turns_of_session, tenant, session_id, request.before, request.limit + 1
        )
        page = tuple(SessionTurn(**dict(turn)) for turn in turns[: request.limit])
        more = page[-1].number if page and len(turns) > request.limit else None
        return SessionTurns(**dict(row), busy_with=open_turn.job_id if open_turn else None, page=page, next_before=more)

    async def on_list(self, request: ListSessions) -> SessionPage:
        """Return a page of a tenant's sessions, the last used first."""
        after = _after(request.cursor) if request.cursor else (None, None)
        rows = await self._store.fetch(
            request.tenant,
            self._store.sql.list_sessions,
            request.tenant,
            request.agent,
            request.user_id,
            *after,
            request.limit + 1,
        )
        page = tuple(Session(**dict(row)) for row in rows[: request.limit])
        more = len(rows) > request.limit
        return SessionPage(sessions=page, next_cursor=_cursor(page[-1]) if more else None)

    async def on_delete(self, request: DeleteSession) -> SessionDeleted:
        """Forget a session that is idle. Raises Conflict while a job of it has not ended."""
        await self.first_open(request.tenant, request.session_id)
        row = await self._store.fetchrow(
            request.tenant, self._store.sql.forget_session, request.tenant, request.session_id
        )
        assert row is not None
        if row["open_job"] is not None:
            raise busy(request.session_id, row["open_job"])
        return SessionDeleted(deleted=row["deleted"])


def busy(session_id: str, job_id: str) -> Conflict:
    """Return the error of what only an idle session takes."""
    return Conflict(
        f"session {session_id!r} is busy with job {job_id!r}: wait for its end, or cancel it", code="session_busy"
    )


def waits_for_turn(head: Head) -> bool:
    """Return whether a job is parked until its turn comes, as its last record says."""
    if head.state is not State.PARKED:
        return False
    last = head.values[-1]
    return last["type"] == "job.parked" and last["waiting"]["wait_id"] == TURN


def _cursor(last: Session) -> str:
    return urlsafe_b64encode(f"{last.updated_at.isoformat()} {last.session_id}".encode()).decode()


def _after(cursor: str) -> tuple[datetime, str]:
    try:
        at, _, session_id = urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        moment = datetime.fromisoformat(at)
    except (ValueError, NotBase64):
        moment, session_id = datetime.min, ""
    if moment.tzinfo is None or not session_id:
        raise Reject(f"{cursor!r} is no cursor of this list: use `next_cursor` of a page", code="invalid_cursor")
    return moment, session_id
