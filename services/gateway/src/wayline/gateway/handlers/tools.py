"""Search among the tools of a tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import ConfigDict, Field, StringConstraints

from wayline.contracts.agents import Agent, GetAgent
from wayline.contracts.ids import Name
from wayline.contracts.tools import FoundTools, SearchTools
from wayline.gateway.handlers.dependencies import GatewayDependency, Reader
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.body import TEXT_WITHOUT_NUL, Body
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1", tags=["agents"], route_class=StrictRoute)


class ToolSearchBody(Body):
    """What a tool should be able to do."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "send money abroad", "agent": "banker"}]})

    query: Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=TEXT_WITHOUT_NUL)]
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
