"""What uses an agent: schedules, other agents, clients of MCP; and a user's latest run of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.agents.agent_page import VIEWS, AgentName, frame_of
from wayline.console.pages.frame import show
from wayline.console.pages.refusal import reason_of

router = APIRouter(prefix="/agents/{name}/uses")
TEMPLATE = "agents/uses.html"


@dataclass(frozen=True, slots=True)
class AgentUses:
    """What the page shows."""

    name: str
    version: int | None
    over_mcp: bool
    schedules: list[dict[str, Any]] | None
    """None: the key may not see them."""
    starters: list[str]
    """Agents that may start it."""
    starts: list[str]
    user_id: str = ""
    latest: dict[str, Any] | None = None
    problem: str = ""
    views: Any = VIEWS
    view: str = "/uses"


async def read(client: Client, name: str, user_id: str) -> AgentUses:
    """Ask the API for what uses an agent."""
    found, agents, schedules = await asyncio.gather(
        client.get(f"/v1/agents/{name}"), client.whole("/v1/agents", "agents"), _schedules(client)
    )
    latest, problem = await _latest(client, name, user_id) if user_id else (None, "")
    return AgentUses(
        name=name,
        version=found["version"],
        over_mcp=found["config"]["over_mcp"],
        schedules=None if schedules is None else [one for one in schedules if one["job"]["agent"] == name],
        starters=[one["name"] for one in agents["agents"] if name in one["config"]["agents"]],
        starts=found["config"]["agents"],
        user_id=user_id,
        latest=latest,
        problem=problem,
    )


async def _schedules(client: Client) -> list[dict[str, Any]] | None:
    try:
        return (await client.whole("/v1/schedules", "schedules"))["schedules"]
    except ApiError as error:
        if error.status != 403:
            raise
        return None


async def _latest(client: Client, name: str, user_id: str) -> tuple[dict[str, Any] | None, str]:
    try:
        return await client.get(f"/v1/agents/{name}/latest", user_id=user_id), ""
    except ApiError as error:
        return None, "This user has no run of the agent." if error.status == 404 else reason_of(error)


@router.get("")
async def uses(
    request: Request,
    visitor: VisitorDependency,
    name: AgentName,
    user: Annotated[str, Query(max_length=128)] = "",
) -> HTMLResponse:
    """Show what uses an agent."""
    page = await read(visitor.client, name, user)
    return await show(request, TEMPLATE, frame_of(request, visitor, name), page=page)
