"""Search among the tools of a tenant."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from wayline.contracts.agents import Agent, AgentConfig, GetAgent
from wayline.contracts.errors import NotFound, Refused, WaylineError
from wayline.contracts.ids import Name
from wayline.contracts.searched_tools import FoundTools, SearchTools
from wayline.contracts.tool_use import (
    AgentsToolUse,
    AgentToolUse,
    AllToolFigures,
    GetAgentsToolUse,
    GetAllToolFigures,
)
from wayline.contracts.tools import ListTools, ToolDefinition, ToolList
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.body import TEXT_WITHOUT_NUL, Body
from wayline.gateway.strict_json import StrictRoute
from wayline.gateway.tool_proposals import ProposedTools, proposed_tools

DAYS, DAYS_MAX = 30, 400

SEARCH_WITHIN_S = 20.0
"""On a busy machine an answer that comes late is worth more than a 503; an index of many tools takes seconds."""

router = APIRouter(prefix="/v1", tags=["agents"], route_class=StrictRoute)


class ToolSearchBody(Body):
    """What a tool should be able to do."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "send money abroad", "agent": "banker"}]})

    query: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000, pattern=TEXT_WITHOUT_NUL)
    ]
    max_results: int = Field(default=10, ge=1, le=20)
    agent: Name | None = Field(
        default=None, description="Only tools that this agent may use are found; others that fit are named."
    )


@router.post("/tools/search", responses=fails(400, 404, 413))
async def search_tools(body: ToolSearchBody, gateway: GatewayDependency, caller: Reader) -> FoundTools:
    """Find the tools that fit a task, the best first, as an agent's `tool_search` finds them."""
    ask = SearchTools(tenant=caller.tenant, query=body.query, max_results=body.max_results)
    if body.agent is not None:
        agent = await gateway.bus.ask(GetAgent(tenant=caller.tenant, name=body.agent), Agent)
        ask = ask.model_copy(update={"patterns": agent.config.tools, "off": agent.config.tools_off})
    return await gateway.bus.ask(ask, FoundTools, timeout_s=SEARCH_WITHIN_S)


class AgentUsage(AgentToolUse):
    """The tools that the newest jobs of one agent called."""

    tools_proposed: ProposedTools | None = Field(
        default=None,
        description="To be saved as the agent's `tools`: it loads those of `always` that are deferred now. Null: none "
        "is, the agent is gone, or its tools cannot be looked up.",
    )


class ToolUsage(BaseModel):
    """What agents call, by name."""

    agents: tuple[AgentUsage, ...]


@router.get("/tools/usage", responses=fails(400))
async def tool_usage(
    gateway: GatewayDependency,
    caller: Reader,
    agent: Name | None = None,
    days: Annotated[int, Query(ge=1, le=DAYS_MAX, description="How far back jobs are looked at.")] = DAYS,
) -> ToolUsage:
    """Return which tools the jobs of agents call, and propose which deferred ones to load always."""
    since = datetime.now(UTC) - timedelta(days=days)
    ask = GetAgentsToolUse(tenant=caller.tenant, agent=agent, since=since)
    used = await gateway.bus.ask(ask, AgentsToolUse)
    there = await _all_tools(gateway, caller.tenant) if any(one.always for one in used.agents) else ()

    async def with_proposal(one: AgentToolUse) -> AgentUsage:
        config = await _current_config(gateway, caller.tenant, one.agent) if one.always and there else None
        proposed = None if config is None else proposed_tools(config, one.always, there)
        return AgentUsage(**dict(one), tools_proposed=proposed)

    return ToolUsage(agents=tuple(await asyncio.gather(*map(with_proposal, used.agents))))


@router.get("/tools/figures", responses=fails(400))
async def tool_figures(
    gateway: GatewayDependency,
    caller: Reader,
    days: Annotated[int, Query(ge=1, le=DAYS_MAX, description="How far back calls are looked at.")] = DAYS,
) -> AllToolFigures:
    """Return how the recorded calls of every tool went that was called: how many, how many failed, how long they took.

    Of the newest 50,000 steps.
    """
    since = datetime.now(UTC) - timedelta(days=days)
    return await gateway.bus.ask(GetAllToolFigures(tenant=caller.tenant, since=since), AllToolFigures)


async def _all_tools(gateway: Gateway, tenant: str) -> tuple[ToolDefinition, ...]:
    """Return the tools of a tenant; none where they cannot be looked up, because what jobs called is known without."""
    try:
        return (await gateway.bus.ask(ListTools(tenant=tenant), ToolList)).tools
    except WaylineError:
        return ()


async def _current_config(gateway: Gateway, tenant: str, agent: str) -> AgentConfig | None:
    """Return how an agent behaves now; None: it is gone."""
    try:
        return (await gateway.bus.ask(GetAgent(tenant=tenant, name=agent), Agent)).config
    except Refused as error:
        if error.code != NotFound.code:
            raise
        return None
