"""One tool: what it is, who may use it, and how its calls went."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from wayline.contracts.base import Usd
from wayline.contracts.errors import NotFound, WaylineError
from wayline.contracts.tool_use import AgentsUsing, AgentVersion, FindAgentsUsing, GetToolFigures, ToolFigures
from wayline.contracts.tools import ListTools, ToolDefinition, ToolList
from wayline.contracts.traces import CostTable, GetCosts
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader
from wayline.gateway.handlers.tools.tools import DAYS, DAYS_MAX
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/tools", tags=["agents"], route_class=StrictRoute)


class ToolView(BaseModel):
    """A tool that agents may use, and what became of its calls."""

    definition: ToolDefinition
    agents_total: int = Field(description="Agents whose current version may use it.")
    agents: tuple[AgentVersion, ...] = Field(description="The first of them by name, at most 100.")
    days: int = Field(description="How far back its calls are looked at.")
    figures: ToolFigures | None = Field(description="How they went; null: tracing does not answer.")
    cost_usd: Usd | None = Field(
        description="What they cost; null: tracing does not answer, or the key is of one user and may not know."
    )
    calls_unknown: int = Field(default=0, description="Calls whose price nobody knows: not in `cost_usd`.")


@router.get("/{name}", responses=fails(404))
async def get_tool(
    name: Annotated[str, Path(min_length=1, max_length=128, examples=["search_knowledge"])],
    gateway: GatewayDependency,
    caller: Reader,
    days: Annotated[int, Query(ge=1, le=DAYS_MAX)] = DAYS,
) -> ToolView:
    """Return a tool: its definition, who may use it, and how its calls of some days went and what they cost."""
    tenant, since = caller.tenant, datetime.now(UTC) - timedelta(days=days)
    found = await gateway.bus.ask(ListTools(tenant=tenant), ToolList)
    definition = next((tool for tool in found.tools if tool.name == name), None)
    if definition is None:
        raise NotFound("tool", name)
    using, figures, costs = await asyncio.gather(
        gateway.bus.ask(FindAgentsUsing(tenant=tenant, tools=(name,)), AgentsUsing),
        _figures(gateway, GetToolFigures(tenant=tenant, tool=name, since=since)),
        _costs(gateway, caller, GetCosts(tenant=tenant, group_by=("tool",), tool=name, since=since)),
    )
    spent = costs.total if costs else None
    return ToolView(
        definition=definition,
        agents_total=using.total,
        agents=using.agents,
        days=days,
        figures=figures,
        cost_usd=None if costs is None else (spent.cost_usd if spent else Decimal(0)),
        calls_unknown=spent.calls_unknown if spent else 0,
    )


async def _figures(gateway: Gateway, asked: GetToolFigures) -> ToolFigures | None:
    try:
        return await gateway.bus.ask(asked, ToolFigures)
    except WaylineError:
        return None


async def _costs(gateway: Gateway, caller: Caller, asked: GetCosts) -> CostTable | None:
    if caller.user_id is not None:
        return None
    try:
        return await gateway.bus.ask(asked, CostTable)
    except WaylineError:
        return None
