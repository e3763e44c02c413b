"""Costs: what was spent, by what one chooses, beside predictions and what caches saved; every bar leads to its jobs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages import job_search
from wayline.console.pages.file_download import file_of
from wayline.console.pages.frame import Frame, show
from wayline.console.render.addresses import query_of
from wayline.console.render.budget_bar import BAR_UNITS

router = APIRouter()
TEMPLATE = "costs.html"
GROUPS: Final = {
    **{name: name for name in ("model", "agent", "tool", "user", "key", "purpose", "day", "hour", "tier", "provider")},
    **{
        "session": "session",
        "schedule": "schedule",
        "kind": "kind of call",
        "cache_break": "cache break",
        "job": "job",
    },
}
"""What costs are grouped by, and how a person calls it."""
DAYS: Final = (1, 7, 30, 90)
NONE: Final = "-"
"""How the API names the group of what has none."""
CONDITIONS: Final = ("model", "agent", "tool", "user", "session", "tier", "schedule")
"""Groups by which jobs can be searched, by the same name in the search box."""
TIMES: Final = {"day": timedelta(days=1), "hour": timedelta(hours=1)}
FILTER_MAX_CHARS = 128


Only: TypeAlias = Annotated[str, Field(max_length=FILTER_MAX_CHARS)]


class Asked(BaseModel):
    """What the page is asked for."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    by: str = Field(default="model", pattern=f"^({'|'.join(GROUPS)})$")
    days: int = Field(default=7, ge=1, le=365)
    agent: Only = ""
    model: Only = ""
    user_id: Only = ""

    @property
    def only(self) -> dict[str, str]:
        """Return the conditions on costs that are not empty."""
        given = {"agent": self.agent, "model": self.model, "user_id": self.user_id}
        return {name: value for name, value in given.items() if value}

    @property
    def time_unit(self) -> str:
        return "hour" if self.days == 1 else "day"

    def address(self, path: str = "/costs", **changed: Any) -> str:
        """Return the address of the page with something changed."""
        given = self.model_dump() | changed
        return f"{path}?{query_of({name: value for name, value in given.items() if value != ''})}"


@dataclass(frozen=True, slots=True)
class Costs:
    """What was spent since a moment, by one group, over time, by tier and by breaks of caches."""

    asked: Asked
    rows: list[dict[str, Any]]
    total: dict[str, Any] | None
    """None: nothing was spent."""
    groups: int
    by_time: list[dict[str, Any]] = field(default_factory=list)
    by_tier: list[dict[str, Any]] = field(default_factory=list)
    breaks: list[dict[str, Any]] = field(default_factory=list)
    budgets: list[dict[str, Any]] = field(default_factory=list)
    job_budget_usd: str | None = None

    def bar(self, row: dict[str, Any]) -> int:
        """Return the length of a row's bar, beside the dearest."""
        most = max((_usd(other) for other in self.rows), default=Decimal(0))
        return round(_usd(row) / most * BAR_UNITS) if most else 0

    def name(self, row: dict[str, Any], group: str | None = None) -> str:
        """Return what a row is of."""
        group = group or self.asked.by
        value = str(row["group"].get(group) or NONE)
        return f"(no {GROUPS[group]})" if value == NONE else value.replace("T", " ") if group in TIMES else value

    def jobs(self, row: dict[str, Any], group: str | None = None) -> str | None:
        """Return the address of a row's jobs; None: they cannot be searched for by this group."""
        group = group or self.asked.by
        value = row["group"].get(group)
        if value in (None, "", NONE):
            return None
        if group == "job":
            return f"/jobs/{value}"
        if group in TIMES:
            end = (datetime.fromisoformat(value) + TIMES[group]).isoformat(timespec="minutes")
            return job_search.address(f"since:{value} until:{end} {self._conditions}sort:dearest".strip())
        if group not in CONDITIONS:
            return None
        return job_search.address(f'{group}:"{value}" since:{self.asked.days}d {self._conditions}sort:dearest')

    @property
    def _conditions(self) -> str:
        names = {"user_id": "user"}
        return "".join(f'{names.get(name, name)}:"{value}" ' for name, value in self.asked.only.items())

    @property
    def gained_usd(self) -> Decimal:
        """Return what caches saved less what they lost."""
        return Decimal(self.total["saved_usd"]) - Decimal(self.total["lost_usd"]) if self.total else Decimal(0)


def _usd(row: dict[str, Any]) -> Decimal:
    return Decimal(row["cost_usd"] or 0)


async def read(client: Client, asked: Asked, *, now: datetime, zone: str = "UTC") -> Costs:
    """Ask the API for costs, dearest first, or by time."""
    period = {"since": (now - timedelta(days=asked.days)).isoformat(), "tz": zone, **asked.only}

    async def grouped(by: str) -> dict[str, Any]:
        return await client.get("/v1/costs", group_by=by, **period)

    table, times, tiers, breaks, budgets = await asyncio.gather(
        grouped(asked.by),
        grouped(asked.time_unit),
        grouped("tier"),
        grouped("cache_break"),
        client.whole("/v1/budgets", "budgets"),
    )
    return Costs(
        asked,
        _ordered(table["rows"], asked.by),
        table["total"],
        table["groups"],
        _ordered(times["rows"], asked.time_unit),
        _ordered(tiers["rows"], "tier"),
        [row for row in _ordered(breaks["rows"], "cache_break") if row["group"].get("cache_break") != NONE],
        budgets["budgets"],
        budgets["job_budget_usd"],
    )


def _ordered(rows: list[dict[str, Any]], group: str) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row["group"].get(group)) if group in TIMES else -_usd(row))


@router.get("/costs")
async def costs(request: Request, visitor: VisitorDependency, asked: Annotated[Asked, Query()]) -> HTMLResponse:
    """Show what was spent."""
    frame = Frame.of(request, visitor, title="Costs", section="/costs")
    found = await read(visitor.client, asked, now=frame.now, zone=request.app.state.zone)
    return await show(request, TEMPLATE, frame, page=found, groups=GROUPS, day_choices=DAYS)


@router.get("/costs.csv")
async def costs_as_csv(
    request: Request, visitor: VisitorDependency, asked: Annotated[Asked, Query()]
) -> StreamingResponse:
    """Answer with the table as a file for a spreadsheet."""
    frame = Frame.of(request, visitor, title="Costs", section="/costs")
    period = {"since": (frame.now - timedelta(days=asked.days)).isoformat(), "tz": request.app.state.zone}
    pieces = visitor.client.download("/v1/costs", group_by=asked.by, format="csv", **period, **asked.only)
    disposition = f'attachment; filename="costs-by-{asked.by}.csv"'
    return await file_of(pieces, disposition=disposition, media_type="text/csv; charset=utf-8")
