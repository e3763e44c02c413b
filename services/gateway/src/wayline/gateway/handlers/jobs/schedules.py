"""Schedules: jobs that are submitted by themselves, at the moments of a cron expression or at one moment."""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Query

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
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.jobs import Accepted, links
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/schedules", tags=["schedules"], route_class=StrictRoute)

SchedulePath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["morning"])]


@router.get("", responses=fails())
async def list_schedules(
    gateway: GatewayDependency,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    after: Annotated[str, Query(pattern=r"^[a-z0-9_-]{0,64}$", description="`next_after` of the page before.")] = "",
) -> ScheduleList:
    """Page through the schedules, by name: each with its next moments and what became of the last one."""
    return await gateway.bus.ask(ListSchedules(tenant=caller.tenant, limit=limit, after=after), ScheduleList)


@router.get("/{name}", responses=fails(404))
async def get_schedule(
    name: SchedulePath,
    gateway: GatewayDependency,
    caller: Reader,
    limit: Annotated[int, Query(ge=0, le=FIRINGS_SHOWN_MAX, description="Of its last firings.")] = 10,
) -> Schedule:
    """Return a schedule: its next moments, and its last firings with their jobs, newest first."""
    return await gateway.bus.ask(GetSchedule(tenant=caller.tenant, name=name, limit=limit), Schedule)


@router.post("/{name}", status_code=201, responses=fails(404, 409, 413))
async def create_schedule(
    name: SchedulePath, config: ScheduleConfig, gateway: GatewayDependency, caller: Admin
) -> Schedule:
    """Create a schedule. 409: there is one of this name."""
    asked = PutSchedule(tenant=caller.tenant, name=name, config=_of(caller, config), create=True)
    return await gateway.bus.ask(asked, Schedule)


@router.put("/{name}", responses=fails(404, 409, 413))
async def put_schedule(
    name: SchedulePath, config: ScheduleConfig, gateway: GatewayDependency, caller: Admin
) -> Schedule:
    """Save a schedule: a change plans anew from now on, the same again changes nothing."""
    return await gateway.bus.ask(PutSchedule(tenant=caller.tenant, name=name, config=_of(caller, config)), Schedule)


def _of(caller: Caller, config: ScheduleConfig) -> ScheduleConfig:
    """Return a schedule whose jobs are of whom the caller may act for. Raises Forbidden."""
    user_id = acting_as(caller, config.job.user_id)
    if user_id == config.job.user_id:
        return config
    return config.model_copy(update={"job": config.job.model_copy(update={"user_id": user_id})})


@router.post("/{name}/enable", responses=fails(404))
async def enable_schedule(name: SchedulePath, gateway: GatewayDependency, caller: Admin) -> Schedule:
    """Enable a schedule: it plans from now on."""
    return await gateway.bus.ask(EnableSchedule(tenant=caller.tenant, name=name, enabled=True), Schedule)


@router.post("/{name}/disable", responses=fails(404))
async def disable_schedule(name: SchedulePath, gateway: GatewayDependency, caller: Admin) -> Schedule:
    """Disable a schedule: it is kept and fires no more."""
    return await gateway.bus.ask(EnableSchedule(tenant=caller.tenant, name=name, enabled=False), Schedule)


@router.post("/{name}/run", status_code=202, responses=fails(404, 429))
async def run_schedule(
    name: SchedulePath, gateway: GatewayDependency, caller: Writer, idempotency_key: IdempotencyKey = None
) -> Accepted:
    """Submit a schedule's job now, also of a disabled one; what it plans stays."""
    await gateway.router.require_room(caller.tenant)
    run_id = ids.new_id("run") if idempotency_key is None else sha256(idempotency_key.encode()).hexdigest()
    fired = await gateway.bus.ask(RunSchedule(tenant=caller.tenant, name=name, run_id=run_id), Firing)
    job_id = str(fired.job_id)
    return Accepted(job_id=job_id, status=Status.QUEUED, links=links(job_id))


@router.delete("/{name}", responses=fails(404))
async def delete_schedule(name: SchedulePath, gateway: GatewayDependency, caller: Admin) -> ScheduleDeleted:
    """Delete a schedule: it fires no more. The jobs that it has submitted go on."""
    return was_there(
        await gateway.bus.ask(DeleteSchedule(tenant=caller.tenant, name=name), ScheduleDeleted), "schedule", name
    )
