"""Agents and the tools they may use."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path

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
from wayline.contracts.errors import WaylineError
from wayline.contracts.tools import ListTools, ToolList
from wayline.gateway.handlers.dependencies import Admin, GatewayDependency, Reader
from wayline.gateway.openapi import fails
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
    return deleted


@router.post("/agents/{name}/restore", responses=fails(404))
async def restore_agent(name: AgentPath, gateway: GatewayDependency, caller: Admin) -> Agent:
    """Bring an agent back: a bundled one as it was delivered, any other as it was last saved."""
    return await gateway.bus.ask(RestoreAgent(tenant=caller.tenant, name=name), Agent)


@router.get("/tools", responses=fails())
async def list_tools(gateway: GatewayDependency, caller: Reader) -> ToolList:
    """Return every tool an agent may use, with its schema and what repeating it would do."""
    return await gateway.bus.ask(ListTools(tenant=caller.tenant), ToolList)
