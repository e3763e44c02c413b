"""Agents: what each is, how often it ran, what that cost, and when it ran last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show

router = APIRouter()
TEMPLATE = "agents/list.html"
DAYS = 30
NEWEST_READ = 200
"""Jobs among which each agent's last run is looked for."""
ASKED_MAX = 25
"""Agents whose last run is asked for singly, where it is not among those."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent of the list."""

    agent: dict[str, Any]
    jobs: int
    cost_usd: str | None
    """None: nobody knows, or the key may not."""
    last: dict[str, Any] | None

    @property
    def model(self) -> str:
        """Return which model takes its jobs, as far as it says so itself."""
        config = self.agent["config"]
        return config["model"] or config["routing"]["primary"] or self.agent["default_model"] or ""


@dataclass(frozen=True, slots=True)
class AgentTable:
    """What the list shows."""

    rows: list[AgentRow]
    knows_costs: bool
    days: int = DAYS


async def read(client: Client, *, now: datetime) -> AgentTable:
    """Ask the API for all agents, and for their jobs and costs of some days."""
    since = (now - timedelta(days=DAYS)).isoformat()
    agents, newest, costs = await asyncio.gather(
        client.whole("/v1/agents", "agents"),
        client.get("/v1/jobs", since=since, limit=NEWEST_READ, facets=True),
        costs_by(client, "agent", since=since),
    )
    counts: dict[str, int] = (newest.get("facets") or {}).get("agent") or {}
    last = last_runs(newest["jobs"])
    missing = [name for name in counts if name not in last][:ASKED_MAX]
    for page in await asyncio.gather(*(client.get("/v1/jobs", agent=name, limit=1) for name in missing)):
        last |= last_runs(page["jobs"])
    rows = [
        AgentRow(agent, counts.get(agent["name"], 0), _spent(costs, agent["name"]), last.get(agent["name"]))
        for agent in agents["agents"]
    ]
    return AgentTable(rows, costs is not None)


def last_runs(jobs: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the first job of each agent in a list of the newest first."""
    found: dict[str, dict[str, Any]] = {}
    for job in jobs:
        found.setdefault(job["agent"], job)
    return found


async def costs_by(client: Client, group: str, *, since: str, **conditions: str) -> dict[str, dict[str, Any]] | None:
    """Return the costs of each member of a group; None: the key is of one user and may not know."""
    try:
        table = await client.get("/v1/costs", group_by=group, since=since, **conditions)
    except ApiError as error:
        if error.status != 403:
            raise
        return None
    return {row["group"].get(group, ""): row for row in table["rows"]}


def _spent(costs: dict[str, dict[str, Any]] | None, agent: str) -> str | None:
    if costs is None:
        return None
    return costs[agent]["cost_usd"] if agent in costs else "0"


@router.get("/agents")
async def agents(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the agents."""
    frame = Frame.of(request, visitor, title="Agents", section="/agents")
    return await show(request, TEMPLATE, frame, page=await read(visitor.client, now=frame.now))
