"""The catalogue of tools: what agents may call, found by name, server or by what it should do, as an agent finds it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.refusal import reason_of

router = APIRouter()
TEMPLATE = "tools/catalogue.html"
PAGE_SIZE = 100
FOUND_MAX = 20
DAYS: Final = 30
TABS: Final = (("/tools", "Tools"), ("/tools/servers", "Servers"), ("/tools/secrets", "Secrets"))
EFFECTS: Final = {
    "read": "it only reads: a repeat changes nothing",
    "idempotent": "it acts, and a repeat changes nothing more",
    "reconcile": "it acts, and its server can say what became of a call",
    "once": "it acts, and a repeat would act again",
}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What the list shows: all tools, those of a server, or what a search found."""

    tools: list[dict[str, Any]]
    next_cursor: str | None = None
    server: str = ""
    query: str = ""
    agent: str = ""
    agents: list[str] = field(default_factory=list)
    found: dict[str, Any] | None = None
    """The whole answer of a search; its tools are in `tools`."""
    away: list[dict[str, Any]] = field(default_factory=list)
    missing: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, dict[str, Any]] | None = field(default_factory=dict)
    """How the calls of tools went, by their names; one that was not called has none. None: nobody knows."""
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What their calls cost, by their names."""
    problem: str = ""

    @property
    def servers(self) -> list[str]:
        """Return the servers of the tools that are shown."""
        return sorted({tool["server"] for tool in self.tools if tool["server"]})


async def read(client: Client, *, cursor: str | None, server: str, since: str) -> Catalogue:
    """Ask the API for one page of tools, all or those of one server, with what their calls cost."""
    page = await client.get("/v1/tools", server=server or None, limit=PAGE_SIZE, cursor=cursor)
    figures, costs = await asyncio.gather(_figures(client), _costs(client, since))
    return Catalogue(
        page["tools"],
        page["next_cursor"],
        server,
        away=page["away"],
        missing=page["missing"],
        figures=figures,
        costs=costs,
    )


async def _figures(client: Client) -> dict[str, dict[str, Any]] | None:
    """Return how the calls of all tools went; None where tracing is away: the catalogue is worth showing without."""
    try:
        found = await client.get("/v1/tools/figures", days=DAYS)
    except ApiError:
        return None
    return {tool["tool"]: tool for tool in found["tools"]}


async def _costs(client: Client, since: str) -> dict[str, dict[str, Any]]:
    """Return what the calls of tools cost; nothing where the key may not know it, or tracing is away."""
    try:
        table = await client.get("/v1/costs", group_by="tool", since=since)
    except ApiError:
        return {}
    return {row["group"]["tool"]: row for row in table["rows"] if row["group"].get("tool")}


async def search(client: Client, *, query: str, agent: str) -> Catalogue:
    """Ask the API for the tools that fit a task, as an agent's `tool_search` does."""
    body: dict[str, Any] = {"query": query, "max_results": FOUND_MAX} | ({"agent": agent} if agent else {})
    try:
        found = await client.post("/v1/tools/search", body)
    except ApiError as error:
        return Catalogue([], query=query, agent=agent, problem=reason_of(error))
    return Catalogue([one["tool"] for one in found["tools"]], query=query, agent=agent, found=found)


@router.get("/tools")
async def tools(
    *,
    request: Request,
    visitor: VisitorDependency,
    q: Annotated[str, Query(max_length=2_000)] = "",
    agent: Annotated[str, Query(max_length=64)] = "",
    server: Annotated[str, Query(max_length=128)] = "",
    cursor: str | None = None,
) -> HTMLResponse:
    """Show the catalogue, or what a search finds in it."""
    frame = Frame.of(request, visitor, title="Tools", section="/tools")
    client = visitor.client
    if q.strip():
        page = await search(client, query=q.strip(), agent=agent.strip())
    else:
        since = (frame.now - timedelta(days=DAYS)).isoformat()
        page = await read(client, cursor=cursor, server=server.strip(), since=since)
    names = [one["name"] for one in (await client.whole("/v1/agents", "agents"))["agents"]]
    status = 422 if page.problem else 200
    values = {"agents": names, "tabs": TABS, "effects": EFFECTS, "days": DAYS}
    return await show(request, TEMPLATE, frame, status=status, page=page, **values)
