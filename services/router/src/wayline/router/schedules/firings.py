"""Firings: what became of each moment of the schedules, decided once and then submitted.

The plan stands in the tables and no process holds a timer. A moment is decided in one statement that also plans the
next; what that statement leaves to be submitted is published until the bus has it, always as the same job. So a router
may die anywhere, and several may look at once.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import timedelta

import structlog

from wayline.chassis import Bus, Delivery, Failpoint, Periodic, reach
from wayline.chassis.concurrency.each_alone import alone, each_alone
from wayline.contracts import headers as h
from wayline.contracts import ids
from wayline.contracts.errors import Full, Reject
from wayline.contracts.jobs import SECONDS_MAX, FiredBy, SubmitJob
from wayline.contracts.schedules import ScheduleConfig, ScheduledJob
from wayline.journal import JobLog, State
from wayline.router.schedules.moments import Decision, decide
from wayline.store import Record, Store
from wayline.telemetry import metrics

log = structlog.get_logger()

DUE_AT_ONCE = 500
"""Schedules decided at one look; the others are decided at the next."""
FIRED_BESIDE = 8
"""Of them, decided and submitted beside each other."""
SENT_AT_ONCE = 500
SEND_AGAIN_AFTER_S = 2.0
"""How long a firing that was decided is left to the router that decided it."""
KEPT_DAYS = 30
"""How long a firing is kept: as long as its job's log."""
FORGET_EVERY_S = 600.0
FORGOTTEN_AT_ONCE = 10_000
JOB_LASTS_MAX = timedelta(seconds=SECONDS_MAX) + timedelta(days=1)
"""A job that was submitted earlier has ended, whatever can still be read of it."""


class Firings:
    """Looks every so often which schedules are due, decides about them and submits their jobs."""

    def __init__(self, bus: Bus, store: Store, *, every_s: float, missed_max_s: float) -> None:
        self._bus = bus
        self._store = store
        self._missed_max = timedelta(seconds=missed_max_s)
        self._forgotten_at = float("-inf")
        self._periodic = Periodic("schedules", self.look, every_s=every_s)
        self.start = self._periodic.start
        self.stop = self._periodic.stop

    async def look(self) -> None:
        """Submit what was left unsubmitted, then decide about every schedule that is due."""
        await each_alone("firing", await self.unsent(), self.submit, mark=self._give_up)
        due = await self.due()
        for first in range(0, len(due), FIRED_BESIDE):
            together = due[first : first + FIRED_BESIDE]
            await asyncio.gather(*(alone("schedule", row, self.decide, mark=self._stop) for row in together))
        await self._forget()

    async def unsent(self) -> list[Record]:
        """Return the firings whose jobs the bus may not have."""
        async with self._store.system() as conn:
            return await conn.fetch(self._store.sql.unsent_firings, SEND_AGAIN_AFTER_S, SENT_AT_ONCE)

    async def due(self) -> list[Record]:
        """Return the schedules whose moment has come."""
        async with self._store.system() as conn:
            return await conn.fetch(self._store.sql.due_schedules, DUE_AT_ONCE)

    async def _give_up(self, row: Record, why: str) -> None:
        """Mark a firing that cannot be submitted."""
        await self._store.execute(row["tenant"], self._store.sql.firing_failed, row["tenant"], row["job_id"], why)

    async def _stop(self, row: Record, why: str) -> None:
        """Note why a schedule cannot be decided about, and plan it no more; saving it plans it again."""
        job_id = ids.firing_job(row["tenant"], row["uid"], row["version"], row["next_at"].isoformat())
        await self._store.fetchrow(
            row["tenant"],
            self._store.sql.decide_firing,
            *(row["tenant"], row["name"], row["uid"], row["version"], row["next_at"], None),
            *(job_id, row["next_at"], "skipped", f"it is planned no more, because it failed: {why}", 0, None),
        )

    async def decide(self, row: Record) -> None:
        """Decide about a schedule that was due when its row was read, and submit its job; the first to decide does."""
        reach(Failpoint.ROUTER_FIRING_BEFORE)
        tenant, config = row["tenant"], read_config(row)
        try:
            decision = decide(config, row["next_at"], now=row["moment"], missed_max=self._missed_max)
        except Reject as error:
            # It was valid when it was saved; the others are not to wait for it.
            decision = Decision(row["next_at"], None, skipped=str(error))
        if not decision.skipped and config.overlap == "skip" and (running := await self._running(row)):
            decision = replace(decision, skipped=f"job {running!r} of the firing before has not ended")
        job_id = ids.firing_job(tenant, row["uid"], row["version"], decision.due_at.isoformat())
        decided = await self._store.fetchrow(
            tenant,
            self._store.sql.decide_firing,
            *(tenant, row["name"], row["uid"], row["version"], row["next_at"], decision.next_at),
            *(job_id, decision.due_at, "skipped" if decision.skipped else "fired", decision.skipped, decision.missed),
            None if decision.skipped else submission(config.job),
        )
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
        last = await self._store.fetchrow(row["tenant"], self._store.sql.last_firing, row["tenant"], row["uid"])
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
        await self._store.execute(tenant, self._store.sql.firing_sent, tenant, job_id)

    async def _forget(self) -> None:
        if time.monotonic() - self._forgotten_at < FORGET_EVERY_S:
            return
        self._forgotten_at = time.monotonic()
        async with self._store.system() as conn:
            await conn.execute(self._store.sql.forget_firings, KEPT_DAYS, FORGOTTEN_AT_ONCE)

    async def fired_by(self, tenant: str, job_id: str, delivery: Delivery) -> FiredBy | None:
        """Return the schedule and the moment that a job was submitted for; what its message claims is looked up."""
        if h.SCHEDULE_NAME not in delivery.headers:
            return None
        row = await self._store.fetchrow(tenant, self._store.sql.firing_of_job, tenant, job_id)
        return None if row is None else FiredBy(**dict(row))

    async def note_refused(self, tenant: str, job_id: str, delivery: Delivery, reason: str) -> None:
        """Note that the submission of a firing was refused: its job may have no log that could say so."""
        if h.SCHEDULE_NAME in delivery.headers:
            await self._store.execute(tenant, self._store.sql.firing_refused, tenant, job_id, reason)


def read_config(row: Record) -> ScheduleConfig:
    """Return the configuration in a schedule's row."""
    return ScheduleConfig.model_validate_json(row["config"], extra="ignore")


def submission(job: ScheduledJob) -> str:
    """Return the body of a submission of a schedule's job, without its id."""
    return SubmitJob(**{name: getattr(job, name) for name in job.model_fields_set}).to_wire().decode()
