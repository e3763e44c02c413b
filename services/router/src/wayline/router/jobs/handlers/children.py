"""Starts and stops the jobs that other jobs start.

The executor alone may ask for it, so what a request says of its parent is believed. The writer of the first record of
the child decides: a child that was stopped before it was started never begins.
"""

from __future__ import annotations

from datetime import UTC, datetime

from wayline.chassis import Bus, Failpoint, reach
from wayline.contracts import ids
from wayline.contracts.errors import Reject
from wayline.contracts.jobs import ChildState, StartChild
from wayline.journal import Fenced, Head, JobLog, State
from wayline.router.admission import first_events
from wayline.router.jobs.families import Families
from wayline.router.jobs.first_records import FirstRecords
from wayline.router.ticket_lanes import TicketLanes


class ChildHandlers:
    """Answers requests for children."""

    def __init__(self, bus: Bus, records: FirstRecords, families: Families, ticket_lanes: TicketLanes) -> None:
        self._bus = bus
        self._records = records
        self._families = families
        self._ticket_lanes = ticket_lanes

    async def on_start(self, request: StartChild) -> ChildState:
        """Give a child its log and its first ticket, or end it; asking again does nothing more. Raises Reject."""
        parent = request.parent
        job_id = ids.child_id(request.tenant, parent.job_id, parent.step, parent.call)
        log = JobLog(self._bus, request.tenant, job_id)
        head = await log.last()
        if head is None:
            head = await (self._void(log, request) if request.stop is not None else self._begin(log, request))
        if head.state is State.ENDED:
            if head.epoch == 0:
                await self._records.conclude(log, [event async for event in log.read()])
        elif request.stop is not None:
            await self._families.stop(request.tenant, job_id, request.stop)
        elif head.state is State.NEW:
            ticket = await self._ticket_lanes.queue_first(request.tenant, job_id, head)
            await self._bus.publish(ticket, msg_id=ticket.msg_id)
        reach(Failpoint.ROUTER_CHILD_AFTER)
        return ChildState(job_id=job_id, ended=head.state is State.ENDED)

    async def _begin(self, log: JobLog, request: StartChild) -> Head:
        job = first_events.child_job(request)
        first = first_events.child_submitted(request, job, log.job_id, datetime.now(UTC))
        reach(Failpoint.ROUTER_CHILD_BEFORE)
        return await self._records.begin_child(log, first, request)

    async def _void(self, log: JobLog, request: StartChild) -> Head:
        """Write the log of a child that never begins."""
        job = first_events.child_job(request)
        first = first_events.child_submitted(request, job, log.job_id, datetime.now(UTC))
        try:
            return await log.begin(
                first_events.voided(first, request.stop or ""), content_hash=first.content_hash, lane=request.lane
            )
        except Fenced:
            head = await log.last()
            if head is None:
                raise Reject(f"the log of job {log.job_id!r} is gone", code="no_log", status=409) from None
            return head
