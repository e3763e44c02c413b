"""When jobs run: pauses of agents, lanes and tenants, and how many jobs run at once."""

from __future__ import annotations

from typing import Annotated, TypeAlias, cast, get_args

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from wayline.contracts.agents import Agent, GetAgent
from wayline.contracts.errors import NotFound
from wayline.contracts.run_controls import (
    NAME_MAX,
    DeleteRunningLimit,
    EndPause,
    ListPauses,
    ListRunningLimits,
    Named,
    Pause,
    PauseEnded,
    PauseKind,
    PauseList,
    PutPause,
    PutRunningLimit,
    Reason,
    RunningLimit,
    RunningLimitDeleted,
    RunningLimitInForce,
    RunningLimitList,
    Whose,
)
from wayline.gateway.errors import Forbidden
from wayline.gateway.handlers.shared.auditing import note_change
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, GatewayDependency, Reader
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.body import Body
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1", tags=["running"], route_class=StrictRoute)

KINDS: tuple[str, ...] = get_args(PauseKind)
WHOSE: tuple[str, ...] = get_args(Whose)
NamePath: TypeAlias = Annotated[str, Path(min_length=1, max_length=NAME_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]


class PauseBody(Body):
    """What shall be paused."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"kind": "agent", "name": "assistant"}]})

    kind: PauseKind = Field(description="`agent`: of the key's own tenant; `lane` and `tenant` need `operator`.")
    name: Named = Field(description="Of the agent, the lane (`interactive` or `batch`) or the tenant.")
    reason: Reason = Field(default="", description="Shown with every job that waits for it.")
    now: bool = Field(
        default=False,
        description="true: jobs that run wait as well, from their next step on. Else they go on to their end.",
    )


@router.get("/pauses", responses=fails())
async def list_pauses(gateway: GatewayDependency, caller: Reader) -> PauseList:
    """List what is paused for the tenant: lanes, the tenant itself, its agents."""
    return await gateway.bus.ask(ListPauses(tenant=caller.tenant), PauseList)


@router.post("/pauses", status_code=201, responses=fails(404, 409, 413))
async def pause(body: PauseBody, gateway: GatewayDependency, caller: Admin) -> Pause:
    """Pause an agent, a lane or a tenant: accepted jobs wait until it is resumed, and nothing is lost.

    One that is paused already keeps the time since when it is.
    """
    note_change(name=f"{body.kind}/{body.name}", detail=body.reason)
    tenant = _tenant_of(caller, body.kind, body.name)
    if body.kind == "agent":
        await gateway.bus.ask(GetAgent(tenant=tenant, name=body.name), Agent)
    return await gateway.bus.ask(PutPause(tenant=tenant, by=caller.name, **dict(body)), Pause)


@router.delete("/pauses/{kind}/{name}", responses=fails(404))
async def resume(kind: NamePath, name: NamePath, gateway: GatewayDependency, caller: Admin) -> PauseEnded:
    """Resume what was paused: its jobs go on where they were."""
    if kind not in KINDS:
        raise NotFound("kind of pause", kind)
    paused = cast(PauseKind, kind)
    asked = EndPause(tenant=_tenant_of(caller, paused, name), kind=paused, name=name)
    ended = await gateway.bus.ask(asked, PauseEnded)
    if not ended.ended:
        raise NotFound(f"pause of {kind}", name)
    return ended


@router.get("/running-limits", responses=fails())
async def list_running_limits(gateway: GatewayDependency, caller: Reader) -> RunningLimitList:
    """List how many jobs of agents, users and API keys run at once, and how many do now."""
    return await gateway.bus.ask(ListRunningLimits(tenant=caller.tenant), RunningLimitList)


@router.post("/running-limits", status_code=201, responses=fails(404, 409, 413))
async def limit_running(limit: RunningLimit, gateway: GatewayDependency, caller: Admin) -> RunningLimitInForce:
    """Limit how many jobs of an agent, a user or an API key run at once; those that run already go on."""
    note_change(name=f"{limit.whose}/{limit.name}", detail=f"{limit.max_running}, {limit.when_full}")
    return await gateway.bus.ask(PutRunningLimit(tenant=caller.tenant, limit=limit), RunningLimitInForce)


@router.delete("/running-limits/{whose}/{name}", responses=fails(404))
async def delete_running_limit(
    whose: NamePath, name: NamePath, gateway: GatewayDependency, caller: Admin
) -> RunningLimitDeleted:
    """Take such a limit away; jobs that wait for a place begin."""
    if whose not in WHOSE:
        raise NotFound("kind of limit", whose)
    asked = DeleteRunningLimit(tenant=caller.tenant, whose=cast(Whose, whose), name=name)
    return was_there(await gateway.bus.ask(asked, RunningLimitDeleted), f"limit of running jobs of {whose}", name)


def _tenant_of(caller: Caller, kind: PauseKind, name: str) -> str:
    """Return whose pause it is. Raises Forbidden: what stops the jobs of whole tenants is an operator's."""
    if kind != "agent" and not caller.is_operator:
        raise Forbidden(f"to pause or resume a {kind} needs the scope 'operator'")
    return name if kind == "tenant" else caller.tenant
