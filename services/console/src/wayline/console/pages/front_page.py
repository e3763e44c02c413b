"""Home: what needs a person first, then what goes on and what it costs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.form_values import new_key
from wayline.console.pages.frame import Frame, show
from wayline.console.render.formats import age

router = APIRouter()
TEMPLATE = "home.html"
NEWEST_SHOWN = 8
DAYS_SHOWN = 14
PAUSED_JOBS = "/jobs?s=status:parked+waiting:pause"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a person should look at."""

    one: str
    many: str
    address: str
    number: int
    age: str = ""

    @property
    def title(self) -> str:
        return self.one if self.number == 1 else self.many


@dataclass(frozen=True, slots=True)
class FrontPage:
    """What Home shows."""

    overview: dict[str, Any]
    newest: list[dict[str, Any]]
    gateway_url: str
    health: dict[str, str] = field(default_factory=dict)
    """What the platform needs, and how it is."""
    by_day: list[dict[str, Any]] = field(default_factory=list)
    """What was spent on each of the last days."""
    changed_tools: int = 0
    pauses: list[dict[str, Any]] = field(default_factory=list)
    key: str = field(default_factory=new_key)
    """Of the first job: a form that is sent twice is one."""

    def needs(self, now: datetime) -> list[Need]:
        """Return what waits for a person, what waits longest first in each kind."""
        found = [
            *(
                Need(words := f"pause: {one['kind']} {one['name']}", words, PAUSED_JOBS, 1, age(one["since"], now))
                for one in self.pauses
            ),
            Need(
                "decision to make",
                "decisions to make",
                "/approvals",
                self.overview["decisions"],
                age(self._decisions_since, now),
            ),
            Need(
                "job parked on a budget",
                "jobs parked on a budget",
                "/jobs?s=status:parked+waiting:budget",
                *self._parked_on("budget", now),
            ),
            Need(
                "job whose call had an unknown end",
                "jobs whose call had an unknown end",
                "/approvals",
                *self._parked_on("needs_decision", now),
            ),
            Need("budget near its limit", "budgets near their limit", "/costs", len(self.overview["budgets"])),
            Need(
                "message that could not be handled",
                "messages that could not be handled",
                "/dead-letters",
                self.overview["dead_letters"] or 0,
            ),
            Need(
                "tool whose definition has changed",
                "tools whose definitions have changed",
                "/tools/servers",
                self.changed_tools,
            ),
        ]
        return [need for need in found if need.number]

    @property
    def _decisions_since(self) -> str | None:
        return self.overview["decisions_oldest_at"]

    def _parked_on(self, why: str, now: datetime) -> tuple[int, str]:
        rows = [row for row in self.overview["open"] if row["waiting_for"] == why]
        oldest = min((row["oldest_at"] for row in rows), default=None)
        return sum(row["jobs"] for row in rows), age(oldest, now)

    @property
    def is_empty(self) -> bool:
        """Return whether the tenant has no job yet."""
        return not self.newest


async def read(client: Client, gateway_url: str, *, now: datetime, zone: str = "UTC") -> FrontPage:
    """Ask the API for what Home shows."""
    since = (now - timedelta(days=DAYS_SHOWN)).isoformat()
    overview, newest, health, costs, servers, paused = await asyncio.gather(
        client.get("/v1/overview"),
        client.get("/v1/jobs", limit=NEWEST_SHOWN),
        _or_nothing(client, "/health/ready"),
        _or_nothing(client, "/v1/costs", group_by="day", tz=zone, since=since),
        _or_nothing(client, "/v1/mcp/servers"),
        _or_nothing(client, "/v1/pauses"),
    )
    days = sorted(costs.get("rows", ()), key=lambda row: row["group"]["day"])
    changed = sum(server["quarantined"] for server in servers.get("servers", ()))
    pauses, needs = paused.get("pauses", []), health.get("needs", {})
    return FrontPage(overview, newest["jobs"], gateway_url, needs, days, changed, pauses)


async def _or_nothing(client: Client, path: str, **params: Any) -> dict[str, Any]:
    """Ask the API for what Home can do without: where it is refused or away, the rest is shown."""
    try:
        return await client.get(path, **params)
    except ApiError:
        return {}


@router.get("/")
async def home(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show Home."""
    frame = Frame.of(request, visitor, title="Home", section="/")
    found = await read(visitor.client, visitor.client.address.url, now=frame.now, zone=request.app.state.zone)
    return await show(request, TEMPLATE, frame, page=found)
