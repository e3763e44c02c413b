"""Home: what needs a person first, then what goes on and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.form_values import new_key
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.settings.services_page import wrong_with
from wayline.console.pages.streamed_page import Part, stream
from wayline.console.render.budget_bar import used_of
from wayline.console.render.formats import age

router = APIRouter()
TEMPLATE = "home.html"
SERVICES_TEMPLATE = "home_services.html"
NEWEST_SHOWN = 8
DAYS_SHOWN = 14
BUDGETS_SHOWN = 6
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
    """What Home shows first."""

    overview: dict[str, Any] | None
    """None: the key is of one user, whose jobs alone it sees."""
    newest: list[dict[str, Any]]
    gateway_url: str
    changed_tools: int = 0
    pauses: list[dict[str, Any]] = field(default_factory=list)
    budgets: list[dict[str, Any]] = field(default_factory=list)
    """Budgets of a window or in all, the fullest first; one of each job has no state of its own."""
    key: str = field(default_factory=new_key)
    """Of the first job: a form that is sent twice is one."""

    def needs(self, now: datetime) -> list[Need]:
        """Return what waits for a person, what waits longest first in each kind."""
        if self.overview is None:
            return []
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
                age(self.overview["decisions_oldest_at"], now),
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

    def _parked_on(self, why: str, now: datetime) -> tuple[int, str]:
        rows = [row for row in (self.overview or {"open": ()})["open"] if row["waiting_for"] == why]
        oldest = min((row["oldest_at"] for row in rows), default=None)
        return sum(row["jobs"] for row in rows), age(oldest, now)

    @property
    def is_empty(self) -> bool:
        """Return whether the tenant has no job yet."""
        return not self.newest


@dataclass(frozen=True, slots=True)
class Lately:
    """What Home shows behind that."""

    by_day: list[dict[str, Any]]
    """What was spent on each of the last days."""
    health: dict[str, str]
    """What the platform needs, and how it is."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The processes of one service."""

    service: str
    ready: int
    processes: int
    in_hand: int
    versions: list[str]
    wrong: list[str]
    """What they need and do not have."""


async def read(client: Client, gateway_url: str, *, of_one_user: bool = False) -> FrontPage:
    """Ask the API for what Home shows first; to a key of one user an overview of all is refused."""
    overview, newest, servers, paused, budgets = await asyncio.gather(
        _nothing() if of_one_user else client.get("/v1/overview"),
        client.get("/v1/jobs", limit=NEWEST_SHOWN),
        _or_nothing(client, "/v1/mcp/servers"),
        _or_nothing(client, "/v1/pauses"),
        _or_nothing(client, "/v1/budgets"),
    )
    changed = sum(server["quarantined"] for server in servers.get("servers", ()))
    kept = [one for one in budgets.get("budgets", ()) if one["window"] != "job"]
    fullest = sorted(kept, key=lambda one: -sum(used_of(one).values()))[:BUDGETS_SHOWN]
    return FrontPage(overview, newest["jobs"], gateway_url, changed, paused.get("pauses", []), fullest)


async def read_lately(client: Client, *, now: datetime, zone: str = "UTC") -> Lately:
    """Ask the API for what Home shows behind that."""
    since = (now - timedelta(days=DAYS_SHOWN)).isoformat()
    costs, health = await asyncio.gather(
        _or_nothing(client, "/v1/costs", group_by="day", tz=zone, since=since),
        _or_nothing(client, "/health/ready"),
    )
    days = sorted(costs.get("rows", ()), key=lambda row: row["group"]["day"])
    return Lately(days, health.get("needs", {}))


def services_of(replicas: Iterable[dict[str, Any]], unanswered: Iterable[str]) -> list[ServiceState]:
    """Return the state of each service by its processes, those that do not answer first."""
    by_service = dict[str, list[dict[str, Any]]]()
    for one in replicas:
        by_service.setdefault(one["service"], []).append(one)
    answered = [
        ServiceState(
            service,
            sum(one["ready"] for one in found),
            len(found),
            sum(one["in_hand"] for one in found),
            sorted({one["version"] for one in found}),
            sorted({wrong for one in found for wrong in wrong_with(one)}),
        )
        for service, found in by_service.items()
    ]
    return [ServiceState(service, 0, 0, 0, [], []) for service in unanswered] + answered


async def _nothing() -> None:
    return None


async def _or_nothing(client: Client, path: str, **params: Any) -> dict[str, Any]:
    """Ask the API for what Home can do without: where it is refused or away, the rest is shown."""
    try:
        return await client.get(path, **params)
    except ApiError:
        return {}


@router.get("/")
async def home(request: Request, visitor: VisitorDependency) -> StreamingResponse:
    """Show Home."""
    frame, client = Frame.of(request, visitor, title="Home", section="/"), visitor.client
    is_of_one_user = visitor.me.get("user_id") is not None
    first = Part(lambda: read(client, client.address.url, of_one_user=is_of_one_user), "first")
    lately = Part(lambda: read_lately(client, now=frame.now, zone=request.app.state.zone), "lately")
    return stream(request, TEMPLATE, frame, first, lately)


@router.get("/home/services")
async def services(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the services on Home, once the page is scrolled to them: each looks at what it needs when it is asked."""
    frame = Frame.of(request, visitor, title="Home", section="/")
    found = await visitor.client.get("/v1/replicas")
    states = services_of(found["replicas"], found["unanswered"])
    return await show(request, SERVICES_TEMPLATE, frame, services=states)
