"""Costs: what was spent, by what one chooses, beside what caches saved; every bar leads to its jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages import job_search
from wayline.console.pages.frame import Frame, show

router = APIRouter()
TEMPLATE = "costs.html"
GROUPS: Final = ("model", "agent", "tool", "user", "session", "day", "hour", "provider", "kind", "purpose", "job")
DAYS: Final = (1, 7, 30, 90)
BAR_UNITS = 1_000
CONDITIONS: Final = {"model": "model", "agent": "agent", "tool": "tool", "user": "user", "session": "session"}
"""Groups by which jobs can be searched, and the name of that condition in the search box."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What was spent since a moment, by one group."""

    group: str
    days: int
    rows: list[dict[str, Any]]
    total: dict[str, Any]
    budgets: list[dict[str, Any]]

    def bar(self, row: dict[str, Any]) -> int:
        """Return the length of a row's bar, beside the dearest."""
        most = max((_usd(other) for other in self.rows), default=Decimal(0))
        return round(_usd(row) / most * BAR_UNITS) if most else 0

    def name(self, row: dict[str, Any]) -> str:
        """Return what a row is of."""
        return str(row["group"].get(self.group) or f"(no {self.group})")

    def jobs(self, row: dict[str, Any]) -> str | None:
        """Return the address of a row's jobs; None: they cannot be searched for by this group."""
        value = row["group"].get(self.group)
        if value is None:
            return None
        if self.group == "job":
            return f"/jobs/{value}"
        condition = CONDITIONS.get(self.group)
        return job_search.address(f'{condition}:"{value}" since:{self.days}d sort:dearest') if condition else None


def _usd(row: dict[str, Any]) -> Decimal:
    return Decimal(row["cost_usd"] or 0)


async def read(client: Client, *, group: str, days: int, now: datetime, may_budgets: bool) -> Costs:
    """Ask the API for costs, dearest first, or by time."""
    since = (now - timedelta(days=days)).isoformat()
    table = await client.get("/v1/costs", group_by=group, since=since)
    in_order = group in ("day", "hour")
    rows = sorted(table["rows"], key=lambda row: str(row["group"].get(group)) if in_order else -_usd(row))
    budgets = (await client.whole("/v1/budgets", "budgets"))["budgets"] if may_budgets else []
    return Costs(group, days, rows, table["total"], budgets)


@router.get("/costs")
async def costs(
    request: Request,
    visitor: VisitorDependency,
    by: Annotated[str, Query(pattern=f"^({'|'.join(GROUPS)})$")] = "model",
    days: Annotated[int, Query(ge=1, le=365)] = 7,
) -> HTMLResponse:
    """Show what was spent."""
    frame = Frame.of(request, visitor, title="Costs", section="/costs")
    found = await read(visitor.client, group=by, days=days, now=frame.now, may_budgets=frame.may("read"))
    return await show(request, TEMPLATE, frame, page=found, groups=GROUPS, day_choices=DAYS)
