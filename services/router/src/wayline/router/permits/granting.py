"""Looks every so often for parked jobs that may run now: their pause is over, or there is a place for them.

Whom to wake is read from the tables, not remembered: a router that dies in between is followed by one that looks again.
"""

from __future__ import annotations

import time

import structlog

from wayline.chassis import Bus, Failpoint, Periodic, reach
from wayline.chassis.concurrency.each_alone import each_alone
from wayline.chassis.concurrency.work_watch import LOOK_ANYWAY_S
from wayline.contracts.jobs import RunJob
from wayline.journal import Head, JobLog, State
from wayline.router.permits.control_table import ControlTable
from wayline.router.permits.permit_table import PermitTable, WaitingJob
from wayline.router.ticket_lanes import TicketLanes

log = structlog.get_logger()

LOOK_EVERY_S = 1.0
TELL_AGAIN_EVERY_S = 10.0
UNTOLD_AFTER_S = 2.0
"""How long a place that was given is left to the router that gave it."""
OLD_AFTER_S = 30.0
"""From when on the log of a job is asked whether its row is still true."""
AT_ONCE = 1_000
WOKEN_BESIDE = 16
"""Jobs that are woken beside each other: a pause of a thousand jobs ends in seconds."""
SWEPT_AT_ONCE = 200
"""Logs that a look asks about old rows: places are not to wait until all have answered."""


class Granting:
    """Wakes jobs whose turn it is."""

    def __init__(self, bus: Bus, permits: PermitTable, controls: ControlTable, lanes: TicketLanes) -> None:
        self._bus = bus
        self._permits = permits
        self._controls = controls
        self._lanes = lanes
        self._told_at = self._sweep_at = float("-inf")
        self._swept = ("", "")
        """The row up to which the present sweep has come."""
        self._periodic = Periodic("permits", self.look, every_s=LOOK_ANYWAY_S)
        self.start = self._periodic.start
        self.stop = self._periodic.stop
        self.look_now = self._periodic.now

    async def look(self) -> None:
        """Wake who may run now, and mend what a dead process has left."""
        await each_alone(
            "paused job", await self._permits.over_pauses(at_most=AT_ONCE), self._resume, beside=WOKEN_BESIDE
        )
        for tenant in await self._permits.tenants_that_wait():
            given = await self._permits.give_places(tenant)
            if given:
                reach(Failpoint.ROUTER_PLACE_BEFORE)
            await each_alone("job with a place", given, self._begin, beside=WOKEN_BESIDE)
        untold = await self._permits.untold(after_s=UNTOLD_AFTER_S, at_most=AT_ONCE)
        await each_alone("job with a place", untold, self._begin)
        # Last: who may run is not to wait for what is only mended.
        now = time.monotonic()
        if now - self._told_at > TELL_AGAIN_EVERY_S:
            self._told_at = now
            await self._controls.tell_again()
        if now >= self._sweep_at:
            self._sweep_at = now + LOOK_EVERY_S
            await self._sweep()

    async def _resume(self, job: WaitingJob) -> None:
        """Queue a job whose pause is over; it asks for a permit again when it is claimed."""
        if _is_parked(await self._head(job), job):
            reach(Failpoint.ROUTER_RESUME_BEFORE)
            await self._queue(job)
            reach(Failpoint.ROUTER_RESUME_AFTER)
        # Only after the ticket is stored: after a crash in between the same ticket is queued again.
        await self._permits.drop(job)

    async def _begin(self, job: WaitingJob) -> None:
        """Queue a job that has a place; one that has ended, or went on by itself, gives it back."""
        if not _is_parked(await self._head(job), job):
            return await self._mend(job)
        await self._queue(job)
        reach(Failpoint.ROUTER_PLACE_AFTER)
        await self._permits.note_told(job)

    async def _queue(self, job: WaitingJob) -> None:
        ticket = await self._lanes.queue(RunJob(tenant=job.tenant, lane=job.lane, job=job.job_id, at=job.at))
        await self._bus.publish(ticket, msg_id=ticket.msg_id)

    async def _sweep(self) -> None:
        """Look at the logs of some jobs whose rows are old: what told of their end or their park may be lost."""
        rows = await self._permits.old(self._swept, after_s=OLD_AFTER_S, at_most=SWEPT_AT_ONCE)
        if len(rows) == SWEPT_AT_ONCE:
            self._swept = rows[-1].tenant, rows[-1].job_id
        else:
            self._swept, self._sweep_at = ("", ""), time.monotonic() + OLD_AFTER_S
        await each_alone("permit", rows, self._mend)

    async def _mend(self, job: WaitingJob) -> None:
        head = await self._head(job)
        # Without a log nothing runs: a job whose submission comes again asks again.
        if head is None or head.state is State.ENDED or (job.state == "running" and _has_left(head, job)):
            await self._permits.drop(job)
        elif job.state == "running":
            await self._permits.note_told(job)

    async def _head(self, job: WaitingJob) -> Head | None:
        return await JobLog(self._bus, job.tenant, job.job_id).last()


def _is_parked(head: Head | None, job: WaitingJob) -> bool:
    return head is not None and head.state is State.PARKED and head.sequence == job.at


def _has_left(head: Head, job: WaitingJob) -> bool:
    return head.state is State.PARKED and head.sequence > job.at
