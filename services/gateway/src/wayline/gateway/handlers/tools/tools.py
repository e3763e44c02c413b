"""Search among the tools of a tenant."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from wayline.contracts.agents import Agent, GetAgent
from wayline.contracts.errors import NotFound
from wayline.contracts.ids import Name
from wayline.contracts.tool_use import AgentsToolUse, AgentToolUse, GetAgentsToolUse
from wayline.contracts.tools import FoundTools, SearchTools
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.body import TEXT_WITHOUT_NUL, Body
from wayline.gateway.strict_json import StrictRoute

DAYS, DAYS_MAX = 30, 400

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
    return await gateway.bus.ask(ask, FoundTools)


class ProposedTools(BaseModel):
    """An agent's `tools`, with those always loaded that its jobs often call."""

    always: tuple[str, ...]
    deferred: tuple[str, ...]


class AgentUsage(AgentToolUse):
    """The tools that the newest jobs of one agent called."""

    tools_proposed: ProposedTools | None = Field(
        default=None, description="To be saved as the agent's `tools`. Null: nothing is proposed, or it is gone."
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
    """Return which tools the jobs of agents call, and which of them are worth loading always."""
    since = datetime.now(UTC) - timedelta(days=days)
    ask = GetAgentsToolUse(tenant=caller.tenant, agent=agent, since=since)
    used = await gateway.bus.ask(ask, AgentsToolUse)

    async def with_proposal(one: AgentToolUse) -> AgentUsage:
        if not one.always:
            return AgentUsage(**dict(one))
        try:
            saved = await gateway.bus.ask(GetAgent(tenant=caller.tenant, name=one.agent), Agent)
        except NotFound:
            return AgentUsage(**dict(one))
        deferred = tuple(name for name in saved.config.tools if name not in one.always)
        return AgentUsage(**dict(one), tools_proposed=ProposedTools(always=one.always, deferred=deferred))

    return ToolUsage(agents=tuple(await asyncio.gather(*map(with_proposal, used.agents))))
