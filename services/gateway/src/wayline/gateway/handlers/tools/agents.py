"""Agents and the tools they may use."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Query

from wayline.contracts import ids
from wayline.contracts.agents import (
    Agent,
    AgentConfig,
    AgentList,
    DeleteAgent,
    Deleted,
    GetAgent,
    ListAgents,
    PutAgent,
    RestoreAgent,
)
from wayline.contracts.errors import NotFound, WaylineError
from wayline.contracts.jobs import GetLatestRun, RunResult
from wayline.contracts.tools import ListTools, ToolList
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Reader, acting_as
from wayline.gateway.handlers.shared.read_job import read_job
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.jobs import links
from wayline.gateway.strict_json import StrictRoute
from wayline.gateway.tool_warnings import unknown_tools

router = APIRouter(prefix="/v1", tags=["agents"], route_class=StrictRoute)

AgentPath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["assistant"])]


@router.get("/agents", responses=fails())
async def list_agents(gateway: GatewayDependency, caller: Reader) -> AgentList:
    """Return the newest version of every agent."""
    return await gateway.bus.ask(ListAgents(tenant=caller.tenant), AgentList)


@router.get("/agents/{name}", responses=fails(404))
async def get_agent(name: AgentPath, gateway: GatewayDependency, caller: Reader) -> Agent:
    """Return the newest version of an agent."""
    return await gateway.bus.ask(GetAgent(tenant=caller.tenant, name=name), Agent)


@router.get("/agents/{name}/latest", responses=fails(404))
async def get_latest_run(
    name: AgentPath,
    gateway: GatewayDependency,
    caller: Reader,
    user_id: Annotated[str, Query(min_length=1, max_length=128, description="As its jobs name their user.")],
) -> RunResult:
    """Return a user's newest run of an agent: what became of it, or how far it is.

    The newest is the one that was accepted last. Jobs that other jobs started, and dry runs, do not count.
    """
    kept = await gateway.bus.ask(
        GetLatestRun(tenant=caller.tenant, agent=name, user_id=acting_as(caller, user_id) or user_id), RunResult
    )
    if kept.ended_at is None:
        kept = await _as_it_is(gateway, caller.tenant, kept)
    return kept.model_copy(update={"links": links(kept.job_id)})


async def _as_it_is(gateway: Gateway, tenant: str, kept: RunResult) -> RunResult:
    """Return a run that has not ended as its log has it; one that is settled in this moment may have ended there."""
    try:
        found = RunResult.of(await read_job(gateway, tenant, kept.job_id))
    except NotFound:
        return kept
    return kept if found is None else found.model_copy(update={"accepted_at": kept.accepted_at})


@router.put("/agents/{name}", responses=fails(400, 409, 413))
async def put_agent(name: AgentPath, config: AgentConfig, gateway: GatewayDependency, caller: Admin) -> Agent:
    """Save an agent: a change is a new version, and a running job keeps the one it began with."""
    saved = await gateway.bus.ask(PutAgent(tenant=caller.tenant, name=name, config=config), Agent)
    return saved.model_copy(update={"warnings": (*saved.warnings, *await _about_tools(config, gateway, caller.tenant))})


async def _about_tools(config: AgentConfig, gateway: GatewayDependency, tenant: str) -> tuple[str, ...]:
    """Name the tools that do not exist: a server may bring them later, so they are no reason to refuse."""
    if set(config.tools) <= {"*"}:
        return ()
    try:
        # All of them, so that a name that is nearly right is seen too.
        there = await gateway.bus.ask(ListTools(tenant=tenant), ToolList)
    except WaylineError as error:
        return (f"its tools could not be looked up: {error}",)
    return unknown_tools(config.tools, there)


@router.delete("/agents/{name}", responses=fails(404, 409))
async def delete_agent(name: AgentPath, gateway: GatewayDependency, caller: Admin) -> Deleted:
    """Delete an agent: jobs that began with it go on, new ones are refused."""
    deleted = await gateway.bus.ask(DeleteAgent(tenant=caller.tenant, name=name), Deleted)
    gateway.router.forget_agent(caller.tenant, name)
    return was_there(deleted, "agent", name)


@router.post("/agents/{name}/restore", responses=fails(404))
async def restore_agent(name: AgentPath, gateway: GatewayDependency, caller: Admin) -> Agent:
    """Bring an agent back: a bundled one as it was delivered, any other as it was last saved."""
    return await gateway.bus.ask(RestoreAgent(tenant=caller.tenant, name=name), Agent)


@router.get("/tools", responses=fails())
async def list_tools(gateway: GatewayDependency, caller: Reader) -> ToolList:
    """Return every tool an agent may use, with its schema and what repeating it would do."""
    return await gateway.bus.ask(ListTools(tenant=caller.tenant), ToolList)
