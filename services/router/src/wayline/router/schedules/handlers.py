"""Saves, enables, shows, fires by hand and deletes schedules."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from wayline.chassis import Bus
from wayline.contracts import ids
from wayline.contracts.errors import Conflict, NotFound, Reject, Retry
from wayline.contracts.jobs import Failure, Status
from wayline.contracts.schedules import (
    NEXT_SHOWN,
    DeleteSchedule,
    EnableSchedule,
    Firing,
    GetSchedule,
    ListSchedules,
    PutSchedule,
    RunSchedule,
    Schedule,
    ScheduleConfig,
    ScheduleDeleted,
    ScheduleList,
)
from wayline.journal import Head, JobLog, State
from wayline.router.admission.conditions import unknown_agent
from wayline.router.schedules.firings import Firings, submission
from wayline.router.schedules.moments import first_moment, moments
from wayline.router.schedules.schedule_table import CreatedMeanwhile, LockedSchedule, ScheduleTable, read_config
from wayline.router.tenants.known_tenants import KnownTenants
from wayline.store import Record

LOGS_READ_BESIDE = 16
_STATUS = {State.NEW: Status.QUEUED, State.ACTIVE: Status.RUNNING, State.PARKED: Status.PARKED}


@dataclass(frozen=True)
class ScheduleLimits:
    """What one tenant may plan."""

    schedules_max: int
    least_interval_s: float


class ScheduleHandlers:
    """Answers requests for schedules."""

    def __init__(
        self, bus: Bus, table: ScheduleTable, *, tenants: KnownTenants, firings: Firings, limits: ScheduleLimits
    ) -> None:
        self._bus = bus
        self._table = table
        self._tenants = tenants
        self._firings = firings
        self._limits = limits
        self._reading = asyncio.Semaphore(LOGS_READ_BESIDE)

    async def on_put(self, request: PutSchedule) -> Schedule:
        """Save a schedule; a change plans anew from now on. Raises Reject for one that cannot be kept."""
        tenant, name, config = request.tenant, request.name, request.config
        await self._tenants.require(tenant)
        if not await self._table.has_agent(tenant, config.job.agent):
            raise unknown_agent(config.job.agent)
        while True:
            try:
                async with self._table.locked(tenant, name) as locked:
                    if locked.row is not None and request.create:
                        raise Conflict(f"schedule {name!r} exists: PUT changes it", code="schedule_exists")
                    row = await self._save(locked, tenant, config)
                break
            except CreatedMeanwhile:
                # This one comes after it.
                continue
        [saved] = await self._shown(tenant, [row], limit=1)
        return saved

    async def on_enable(self, request: EnableSchedule) -> Schedule:
        """Enable or disable a schedule; one that is enabled plans from now on. Raises NotFound."""
        tenant, name = request.tenant, request.name
        async with self._table.locked(tenant, name) as locked:
            if locked.row is None:
                raise NotFound("schedule", name)
            config = read_config(locked.row).model_copy(update={"enabled": request.enabled})
            row = await self._save(locked, tenant, config)
        [saved] = await self._shown(tenant, [row], limit=1)
        return saved

    async def _save(self, locked: LockedSchedule, tenant: str, config: ScheduleConfig) -> Record:
        if locked.row is not None and read_config(locked.row) == config:
            return locked.row
        least = timedelta(seconds=self._limits.least_interval_s)
        next_at = first_moment(config, now=await locked.now(), least_interval=least)
        if locked.row is None:
            await self._require_room(locked, tenant)
        return await locked.save(config, next_at=next_at)

    async def _require_room(self, locked: LockedSchedule, tenant: str) -> None:
        most = self._limits.schedules_max
        if await locked.count() >= most:
            raise Reject(
                f"the tenant has {most} schedules: delete one that is over, or raise WAYLINE_ROUTER_SCHEDULES_MAX",
                code="too_many_schedules",
                status=409,
            )

    async def on_get(self, request: GetSchedule) -> Schedule:
        """Return a schedule with its next and its last firings. Raises NotFound."""
        row = await self._table.get(request.tenant, request.name)
        if row is None:
            raise NotFound("schedule", request.name)
        [found] = await self._shown(request.tenant, [row], limit=request.limit)
        return found

    async def on_list(self, request: ListSchedules) -> ScheduleList:
        """Return a page of a tenant's schedules, each with its last firing."""
        rows = await self._table.list(request.tenant, after=request.after, limit=request.limit + 1)
        page = await self._shown(request.tenant, rows[: request.limit], limit=1)
        more = len(rows) > request.limit
        return ScheduleList(schedules=tuple(page), next_after=page[-1].name if more else None)

    async def on_delete(self, request: DeleteSchedule) -> ScheduleDeleted:
        """Delete a schedule; what it has fired goes on."""
        return ScheduleDeleted(deleted=await self._table.delete(request.tenant, request.name))

    async def on_run(self, request: RunSchedule) -> Firing:
        """Fire a schedule now, also a disabled one; its plan is as before. Raises NotFound."""
        tenant, name = request.tenant, request.name
        known = await self._table.get(tenant, name)
        if known is None:
            raise NotFound("schedule", name)
        job_id = ids.firing_job(tenant, known["uid"], 0, f"run/{request.run_id}")
        body = submission(read_config(known).job)
        fired = await self._table.run(tenant, name, job_id=job_id, submission=body)
        if fired is None:
            raise NotFound("schedule", name)
        # It is decided: what the bus does not take now, a later look submits.
        with suppress(Retry):
            await self._firings.submit(fired)
        return _firing(fired)

    async def _shown(self, tenant: str, rows: list[Record], *, limit: int) -> list[Schedule]:
        """Return schedules with their last firings, and what their jobs' logs say."""
        fired: dict[str, list[Record]] = {row["uid"]: [] for row in rows}
        if rows and limit:
            for found in await self._table.firings(tenant, [*fired], limit=limit):
                fired[found["uid"]].append(found)
        return [
            _schedule(row, await asyncio.gather(*(self._followed(tenant, one) for one in fired[row["uid"]])))
            for row in rows
        ]

    async def _followed(self, tenant: str, row: Record) -> Firing:
        """Return a firing with its job's status, read from the job's log."""
        firing = _firing(row)
        if firing.outcome != "fired":
            return firing
        async with self._reading:
            head = await JobLog(self._bus, tenant, row["job_id"]).last()
        status, error = _standing(head)
        return firing.model_copy(update={"status": status, "error": error})


def _standing(head: Head | None) -> tuple[Status | None, Failure | None]:
    """Return where a job stands as its last record says, and why it failed; a job without a log is queued."""
    if head is None:
        return Status.QUEUED, None
    if head.state is not State.ENDED:
        return _STATUS[head.state], None
    last = head.values[-1]
    error = Failure.model_validate(last["error"]) if last["type"] == "job.failed" else None
    return Status(last["type"].removeprefix("job.")), error


def _firing(row: Record) -> Firing:
    skipped = row["outcome"] == "skipped"
    return Firing.model_validate({**dict(row), "job_id": None if skipped else row["job_id"]})


def _schedule(row: Record, firings: list[Firing]) -> Schedule:
    config, next_at = read_config(row), row["next_at"]
    return Schedule(
        **{name: getattr(config, name) for name in config.model_fields_set},
        **{name: row[name] for name in ("name", "version", "created_at", "updated_at", "next_at")},
        next_firings=_coming(config, next_at),
        firings=tuple(firings),
    )


def _coming(config: ScheduleConfig, next_at: datetime | None) -> tuple[datetime, ...]:
    if next_at is None:
        return ()
    try:
        return (next_at, *islice(moments(config, after=next_at), NEXT_SHOWN - 1))
    except Reject:
        return (next_at,)
