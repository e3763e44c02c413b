"""Whose turn it is in a session: the first of its jobs that has not ended.

The tables say the order; whether a job has ended is decided by its log. So a row that was not marked in time delays
no job: the next router that looks finds the end in the log, and marks it.
"""

from __future__ import annotations

from typing import NamedTuple

import structlog

from wayline.chassis import Bus, Failpoint, reach
from wayline.contracts.errors import Full
from wayline.contracts.jobs import TURN, Cancel, RunJob, Signal, Steer, Turn
from wayline.journal import Head, JobLog, State
from wayline.router.sessions.turn_table import TurnTable
from wayline.router.ticket_lanes import TicketLanes

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

    def __init__(self, bus: Bus, table: TurnTable, ticket_lanes: TicketLanes, *, waiting_max: int) -> None:
        self._bus = bus
        self._ticket_lanes = ticket_lanes
        self._table = table
        self._waiting_max = waiting_max

    async def turn_of(self, tenant: str, job_id: str) -> Turn | None:
        """Return the turn that a job has taken."""
        return await self._table.turn_of(tenant, job_id)

    async def first_open(self, tenant: str, session_id: str, *, before: int | None = None) -> OpenTurn | None:
        """Return the first turn whose job has not ended; turns that are found to have ended are marked on the way."""
        while True:
            jobs = await self._table.open(tenant, session_id, before=before, limit=OPEN_AT_ONCE)
            ended: list[str] = []
            found = None
            for job_id in jobs:
                head = await JobLog(self._bus, tenant, job_id).last()
                if head is None or head.state is not State.ENDED:
                    found = OpenTurn(job_id, head)
                    break
                ended.append(job_id)
            if ended:
                await self._table.end(tenant, ended)
            if found is not None or len(jobs) < OPEN_AT_ONCE:
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

    async def remember_for(self, tenant: str, job_id: str, user_id: str) -> None:
        """Note that what a user said in a turn is to be read for what lasts, once its session is quiet."""
        await self._table.remember_for(tenant, job_id, user_id)

    async def end(self, tenant: str, job_id: str, *, ran: bool = True) -> None:
        """Mark the end of a job, and wake the next of its session; a job of no session changes nothing.

        Where it never `ran`, jobs behind it may have waited for its log to steer in their order.
        """
        for session_id in await self._table.end(tenant, [job_id]):
            if not ran:
                await self.steer(tenant, session_id)
            await self.wake_next(tenant, session_id)

    async def steer(self, tenant: str, session_id: str) -> None:
        """Tell running jobs of a session which later ones have words for them, in the order of their turns.

        One whose log has not been begun stops those behind it; its own router goes on from it.
        """
        for job_id in await self._table.steering(tenant, session_id):
            head = await JobLog(self._bus, tenant, job_id).last()
            if head is None:
                return
            into = head.values[-1]["waiting"].get("into") if waits_for_turn(head) else None
            if into is not None and not await self._tell(tenant, into, by=job_id):
                return
            await self._table.note_steered(tenant, job_id)

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
        jobs = await self._table.open(tenant, session_id, before=turn.number, limit=self._waiting_max + 1)
        for job_id in reversed(jobs):
            cancel = Cancel(reason=f"interrupted by job {by}", by="session")
            signal = Signal(tenant=tenant, job_id=job_id, signal=cancel)
            await self._bus.publish(signal, msg_id=f"{tenant}/{by}:interrupt:{job_id}")


def waits_for_turn(head: Head) -> bool:
    """Return whether a job is parked until its turn comes, as its last record says."""
    if head.state is not State.PARKED:
        return False
    last = head.values[-1]
    return last["type"] == "job.parked" and last["waiting"]["wait_id"] == TURN
