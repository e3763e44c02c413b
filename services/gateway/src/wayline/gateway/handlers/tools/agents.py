"""Agents and the tools they may use."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Query, Response

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
from wayline.gateway.conditions import IfUnchanged, entity_tag
from wayline.gateway.handlers.shared.changing import Changeable, tagged
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Admin, Gateway, GatewayDependency, Reader, acting_as
from wayline.gateway.handlers.shared.read_job import read_job
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails, tags
from wayline.gateway.paging import PageCursor, Paged, PageLimit, after_name, behind, page_of
from wayline.gateway.shapes.jobs import links
from wayline.gateway.strict_json import StrictRoute
from wayline.gateway.tool_warnings import unknown_tools

router = APIRouter(prefix="/v1", tags=["agents"], route_class=StrictRoute)

AgentPath: TypeAlias = Annotated[str, Path(pattern=ids.NAME_PATTERN, examples=["assistant"])]


class AgentPage(AgentList, Paged):
    """A page of the newest versions of agents, by name."""


class ToolPage(ToolList, Paged):
    """A page of the tools that agents may use, by name."""


@router.get("/agents", responses=fails(400))
async def list_agents(
    gateway: GatewayDependency, caller: Reader, limit: PageLimit = 100, cursor: PageCursor = None
) -> AgentPage:
    """Page through the agents, by name: the newest version of each."""
    after = after_name(cursor)
    found = await gateway.bus.ask(ListAgents(tenant=caller.tenant, after=after, limit=limit + 1), AgentList)
    page = behind(found.agents, after, limit=limit, key=lambda agent: agent.name)
    return AgentPage(agents=page.items, next_cursor=page.next_cursor)


@router.get("/agents/{name}", responses=tags(404))
async def get_agent(name: AgentPath, gateway: GatewayDependency, caller: Reader, response: Response) -> Agent:
    """Return the newest version of an agent."""
    found = await _agent(gateway, caller, name)
    return tagged(response, found, _tag(found))


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


@router.put("/agents/{name}", responses=tags(400, 409, 412, 413))
async def put_agent(
    *,
    name: AgentPath,
    config: AgentConfig,
    gateway: GatewayDependency,
    caller: Admin,
    condition: IfUnchanged,
    response: Response,
) -> Agent:
    """Save an agent: a change is a new version, and a running job keeps the one it began with."""
    async with AGENT.changing(gateway, caller, name, condition):
        asked = PutAgent(tenant=caller.tenant, name=name, config=config, by=caller.name[:128])
        saved = await gateway.bus.ask(asked, Agent)
    warnings = (*saved.warnings, *await about_tools(config, gateway, caller.tenant))
    return tagged(response, saved.model_copy(update={"warnings": warnings}), _tag(saved))


def _tag(agent: Agent) -> str:
    return entity_tag(agent.model_dump(mode="json", exclude={"warnings", "default_model", "labels"}))


async def about_tools(config: AgentConfig, gateway: GatewayDependency, tenant: str) -> tuple[str, ...]:
    """Name the tools that do not exist: a server may bring them later, so they are no reason to refuse."""
    if set(config.tools) <= {"*"}:
        return ()
    try:
        # All of them, so that a name that is nearly right is seen too.
        there = await gateway.bus.ask(ListTools(tenant=tenant), ToolList)
    except WaylineError as error:
        return (f"its tools could not be looked up: {error}",)
    return unknown_tools(config.tools, there)


@router.delete("/agents/{name}", responses=fails(404, 409, 412))
async def delete_agent(name: AgentPath, gateway: GatewayDependency, caller: Admin, condition: IfUnchanged) -> Deleted:
    """Delete an agent: jobs that began with it go on, new ones are refused."""
    async with AGENT.changing(gateway, caller, name, condition):
        deleted = await gateway.bus.ask(DeleteAgent(tenant=caller.tenant, name=name), Deleted)
    gateway.router.forget_agent(caller.tenant, name)
    return was_there(deleted, "agent", name)


@router.post("/agents/{name}/restore", responses=tags(404))
async def restore_agent(name: AgentPath, gateway: GatewayDependency, caller: Admin, response: Response) -> Agent:
    """Bring an agent back: a bundled one as it was delivered, any other as it was last saved."""
    async with AGENT.changing(gateway, caller, name):
        asked = RestoreAgent(tenant=caller.tenant, name=name, by=caller.name[:128])
        restored = await gateway.bus.ask(asked, Agent)
    return tagged(response, restored, _tag(restored))


@router.get("/tools", responses=fails(400))
async def list_tools(
    gateway: GatewayDependency,
    caller: Reader,
    *,
    server: Annotated[str | None, Query(min_length=1, max_length=128, description="Only tools of this one.")] = None,
    limit: PageLimit = 100,
    cursor: PageCursor = None,
) -> ToolPage:
    """Page through the tools that agents may use, by name: each with its schema and what repeating it would do."""
    found = await gateway.bus.ask(ListTools(tenant=caller.tenant), ToolList)
    tools = found.tools if server is None else tuple(tool for tool in found.tools if tool.server == server)
    page = page_of(tools, limit=limit, cursor=cursor, key=lambda tool: tool.name)
    return ToolPage(tools=page.items, away=found.away, missing=found.missing, next_cursor=page.next_cursor)


async def _agent(gateway: Gateway, caller: Caller, name: str) -> Agent:
    return await gateway.bus.ask(GetAgent(tenant=caller.tenant, name=name), Agent)


AGENT = Changeable("agent", _agent, _tag)
