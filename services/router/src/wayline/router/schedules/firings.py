"""Firings: what became of each moment of the schedules, decided once and then submitted.

The plan stands in the tables and no process holds a timer. A moment is decided in one statement that also plans the
next; what that statement leaves to be submitted is published until the bus has it, always as the same job. So a router
may die anywhere, and several may look at once.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import structlog

from wayline.chassis import Bus, Delivery, Failpoint, Periodic, reach
from wayline.chassis.concurrency.each_alone import alone, each_alone
from wayline.chassis.concurrency.work_watch import LOOK_ANYWAY_S
from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.errors import Full, Reject
from wayline.contracts.jobs import SECONDS_MAX, FiredBy, SubmitJob
from wayline.contracts.schedules import ScheduledJob
from wayline.journal import JobLog, State
from wayline.router.schedules.firing_table import FiringTable
from wayline.router.schedules.moments import FiringDecision, asks_for_overlap, decide, without_overlap
from wayline.router.schedules.schedule_table import read_config
from wayline.store import Record
from wayline.telemetry import metrics

log = structlog.get_logger()

FIRED_BESIDE = 8
"""Schedules decided and submitted beside each other."""
FORGET_EVERY_S = 600.0
JOB_LASTS_MAX = timedelta(seconds=SECONDS_MAX) + timedelta(days=1)
"""A job that was submitted earlier has ended, whatever can still be read of it."""


class Firings:
    """Looks every so often which schedules are due, decides about them and submits their jobs."""

    def __init__(self, bus: Bus, table: FiringTable, *, every_s: float, missed_max_s: float) -> None:
        self._bus = bus
        self._table = table
        self._missed_max = timedelta(seconds=missed_max_s)
        self._forgotten_at = float("-inf")
        self._periodic = Periodic("schedules", self.look, every_s=max(every_s, LOOK_ANYWAY_S))
        self.start = self._periodic.start
        self.stop = self._periodic.stop
        self.look_now = self._periodic.now

    async def look(self) -> None:
        """Submit what was left unsubmitted, then decide about every schedule that is due."""
        unsent, due = await self._table.unsent_and_due()
        await each_alone("firing", unsent, self.submit, mark=self._give_up)
        for first in range(0, len(due), FIRED_BESIDE):
            together = due[first : first + FIRED_BESIDE]
            await asyncio.gather(*(alone("schedule", row, self.decide, mark=self._stop) for row in together))
        await self._forget()

    async def _give_up(self, row: Record, why: str) -> None:
        """Mark a firing that cannot be submitted."""
        await self._table.note_failed(row["tenant"], row["job_id"], why)

    async def _stop(self, row: Record, why: str) -> None:
        """Note why a schedule cannot be decided about, and plan it no more; saving it plans it again."""
        job_id = ids.firing_job(row["tenant"], row["uid"], row["version"], row["next_at"].isoformat())
        stopped = FiringDecision(row["next_at"], None, skipped=f"it is planned no more, because it failed: {why}")
        await self._table.decide(row, job_id, stopped, submission=None)

    async def decide(self, row: Record) -> None:
        """Decide about a schedule that was due when its row was read, and submit its job; the first to decide does."""
        reach(Failpoint.ROUTER_FIRING_BEFORE)
        tenant, config = row["tenant"], read_config(row)
        try:
            decision = decide(config, row["next_at"], now=row["moment"], missed_max=self._missed_max)
        except Reject as error:
            # It was valid when it was saved; the others are not to wait for it.
            decision = FiringDecision(row["next_at"], None, skipped=str(error))
        if asks_for_overlap(config, decision):
            decision = without_overlap(decision, running=await self._running(row))
        job_id = ids.firing_job(tenant, row["uid"], row["version"], decision.due_at.isoformat())
        body = None if decision.skipped else submission(config.job)
        decided = await self._table.decide(row, job_id, decision, submission=body)
        if decided is None:
            return
        reach(Failpoint.ROUTER_FIRING_AFTER)
        metrics.schedule_firings.labels(decided["outcome"]).inc()
        if decision.skipped:
            log.warning("a firing is skipped", tenant=tenant, schedule=row["name"], why=decision.skipped)
        else:
            await self.submit(decided)

    async def _running(self, row: Record) -> str | None:
        """Return the job of the firing before, where it has not ended."""
        last = await self._table.last(row["tenant"], row["uid"])
        if last is None or last["decided_at"] < row["moment"] - JOB_LASTS_MAX:
            return None
        head = await JobLog(self._bus, row["tenant"], last["job_id"]).last()
        return None if head is not None and head.state is State.ENDED else last["job_id"]

    async def submit(self, row: Record) -> None:
        """Publish a decided firing's job, and note that the bus has it; where it is full, a later look does it."""
        if row["submission"] is None:
            return
        tenant, job_id = row["tenant"], row["job_id"]
        job = SubmitJob.from_wire(row["submission"].encode(), f"jobs.submit.{tenant}")
        job = job.model_copy(update={"job_id": job_id})
        trace_id, span_id = ids.schedule_span(tenant, row["uid"], row["version"])
        headers = {h.SCHEDULE_NAME: row["schedule"], h.CALLER: f"00-{trace_id}-{span_id}-01"}
        try:
            await self._bus.publish(job, msg_id=job_id, headers=headers)
        except Full as error:
            log.warning("put off", what="firing", tenant=tenant, schedule=row["schedule"], why=str(error))
            return
        reach(Failpoint.ROUTER_FIRED_AFTER)
        # Only after the submission is stored: after a crash in between the same submission is sent again.
        await self._table.note_sent(tenant, job_id)

    async def _forget(self) -> None:
        if time.monotonic() - self._forgotten_at < FORGET_EVERY_S:
            return
        self._forgotten_at = time.monotonic()
        await self._table.forget()

    async def fired_by(self, tenant: str, job_id: str, delivery: Delivery) -> FiredBy | None:
        """Return the schedule and the moment that a job was submitted for; what its message claims is looked up."""
        if h.SCHEDULE_NAME not in delivery.headers:
            return None
        return await self._table.fired_by(tenant, job_id)

    async def note_refused(self, tenant: str, job_id: str, delivery: Delivery, reason: str) -> None:
        """Note that the submission of a firing was refused: its job may have no log that could say so."""
        if h.SCHEDULE_NAME in delivery.headers:
            await self._table.note_refused(tenant, job_id, reason)


def submission(job: ScheduledJob) -> str:
    """Return the body of a submission of a schedule's job, without its id."""
    return SubmitJob(**{name: getattr(job, name) for name in job.model_fields_set}).to_wire().decode()
