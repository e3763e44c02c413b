"""Schedules: jobs that are submitted by themselves, at the moments of a cron expression or at one moment."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Path, Query, Response

from wayline.contracts import ids
from wayline.contracts.jobs import Status
from wayline.contracts.schedules import (
    FIRINGS_SHOWN_MAX,
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
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.errors import Forbidden
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.shared.read_job import wait_for_log
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.paging import PageCursor, Paged, after_name, cursor_of
from wayline.gateway.shapes.jobs import Accepted, links
from wayline.gateway.strict_json import StrictRoute

LOG_WITHIN_S: Final = 1.0
"""How long a run by hand is held back for its job's log: until then the link to the job leads nowhere."""

router = APIRouter(prefix="/v1/schedules", tags=["schedules"], route_class=StrictRoute)

SchedulePath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["morning"])]


class SchedulePage(Paged):
    """A page of schedules by name."""

    schedules: tuple[Schedule, ...]


@router.get("", responses=fails(400))
async def list_schedules(
    gateway: GatewayDependency,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: PageCursor = None,
) -> SchedulePage:
    """Page through the schedules, by name: each with its next moments and its last firing."""
    after = after_name(cursor)
    found = await gateway.bus.ask(ListSchedules(tenant=caller.tenant, limit=limit, after=after), ScheduleList)
    more = None if found.next_after is None else cursor_of(found.next_after)
    return SchedulePage(schedules=found.schedules, next_cursor=more)


@router.get("/{name}", responses=tags(404))
async def get_schedule(
    name: SchedulePath,
    gateway: GatewayDependency,
    caller: Reader,
    response: Response,
    limit: Annotated[int, Query(ge=0, le=FIRINGS_SHOWN_MAX, description="Of its last firings.")] = 10,
) -> Schedule:
    """Return a schedule: its next moments, and its last firings with their jobs, newest first."""
    found = await gateway.bus.ask(GetSchedule(tenant=caller.tenant, name=name, limit=limit), Schedule)
    return tagged(response, found, _tag(found))


def _tag(schedule: Schedule) -> str:
    # Created again it has the same version.
    saved = schedule.model_dump(mode="json", include={*ScheduleConfig.model_fields, "name", "version", "created_at"})
    return entity_tag(saved)


@router.post("/{name}", status_code=201, responses=fails(404, 409, 413))
async def create_schedule(
    name: SchedulePath, config: ScheduleConfig, gateway: GatewayDependency, caller: Admin, response: Response
) -> Schedule:
    """Create a schedule. 409: there is one of this name."""
    asked = PutSchedule(tenant=caller.tenant, name=name, config=_of(caller, config), create=True)
    async with SCHEDULE.changing(gateway, caller, name):
        created = await gateway.bus.ask(asked, Schedule)
    return tagged(response, created, _tag(created))


@router.put("/{name}", responses=tags(404, 409, 412, 413))
async def put_schedule(
    *,
    name: SchedulePath,
    config: ScheduleConfig,
    gateway: GatewayDependency,
    caller: Admin,
    condition: IfUnchanged,
    response: Response,
) -> Schedule:
    """Save a schedule: a change plans anew from now on, the same again changes nothing."""
    async with SCHEDULE.changing(gateway, caller, name, condition):
        asked = PutSchedule(tenant=caller.tenant, name=name, config=_of(caller, config))
        saved = await gateway.bus.ask(asked, Schedule)
    return tagged(response, saved, _tag(saved))


def _of(caller: Caller, config: ScheduleConfig) -> ScheduleConfig:
    """Return a schedule whose jobs are of whom the caller may act for. Raises Forbidden."""
    user_id = acting_as(caller, config.job.user_id)
    if user_id == config.job.user_id:
        return config
    return config.model_copy(update={"job": config.job.model_copy(update={"user_id": user_id})})


async def _enable(gateway: Gateway, caller: Caller, name: str, *, enabled: bool) -> Schedule:
    async with SCHEDULE.changing(gateway, caller, name):
        return await gateway.bus.ask(EnableSchedule(tenant=caller.tenant, name=name, enabled=enabled), Schedule)


@router.post("/{name}/enable", responses=fails(404))
async def enable_schedule(name: SchedulePath, gateway: GatewayDependency, caller: Admin) -> Schedule:
    """Enable a schedule: it plans from now on."""
    return await _enable(gateway, caller, name, enabled=True)


@router.post("/{name}/disable", responses=fails(404))
async def disable_schedule(name: SchedulePath, gateway: GatewayDependency, caller: Admin) -> Schedule:
    """Disable a schedule: it is kept and fires no more."""
    return await _enable(gateway, caller, name, enabled=False)


@router.post("/{name}/run", status_code=202, responses=fails(404, 429))
async def run_schedule(
    name: SchedulePath, gateway: GatewayDependency, caller: Writer, idempotency_key: IdempotencyKey = None
) -> Accepted:
    """Submit a schedule's job now, also of a disabled one; what it plans stays."""
    if caller.user_id is not None or caller.rates.rates:
        user_id = (await gateway.bus.ask(GetSchedule(tenant=caller.tenant, name=name), Schedule)).job.user_id
        if caller.user_id not in (None, user_id):
            raise Forbidden(f"this API key acts for user {caller.user_id!r}, and the schedule's jobs are not theirs")
        await gateway.rates.spend(caller.tenant, caller.buckets("jobs", user_id=user_id))
    await gateway.router.require_room(caller.tenant)
    run_id = ids.new_id("run") if idempotency_key is None else sha256(idempotency_key.encode()).hexdigest()
    fired = await gateway.bus.ask(RunSchedule(tenant=caller.tenant, name=name, run_id=run_id), Firing)
    job_id = str(fired.job_id)
    await wait_for_log(gateway, caller.tenant, job_id, wait_s=LOG_WITHIN_S)
    return Accepted(job_id=job_id, status=Status.QUEUED, links=links(job_id))


@router.delete("/{name}", responses=fails(404, 412))
async def delete_schedule(
    name: SchedulePath, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged
) -> ScheduleDeleted:
    """Delete a schedule: it fires no more. The jobs that it has submitted go on."""
    async with SCHEDULE.changing(gateway, caller, name, condition):
        deleted = await gateway.bus.ask(DeleteSchedule(tenant=caller.tenant, name=name), ScheduleDeleted)
    return was_there(deleted, "schedule", name)


async def _schedule(gateway: Gateway, caller: Caller, name: str) -> Schedule:
    return await gateway.bus.ask(GetSchedule(tenant=caller.tenant, name=name, limit=0), Schedule)


SCHEDULE = Changeable("schedule", _schedule, _tag)
