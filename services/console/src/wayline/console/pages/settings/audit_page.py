"""Audit: who changed what, and whether it was made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from wayline.client import ApiError
from wayline.console.access.visitor import Visitor, VisitorDependency
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.settings.settings_page import VIEWS
from wayline.console.render.addresses import query_of

router = APIRouter(prefix="/settings/audit")
TEMPLATE = "settings/audit.html"
PAGE_SIZE = 50
DAYS: Final = (0, 1, 7, 30, 90)
KINDS: Final = (
    *("agent", "model", "settings", "budget", "schedule", "prompt", "server", "secret", "tenant", "API key", "webhook"),
    *("approval", "memory", "insight", "subject", "document", "vector set"),
    *("pause", "limit of running jobs", "replica", "dead letter", "erasure"),
)
"""Offered, where others can be written."""
Word = Annotated[str, Query(max_length=128)]


@dataclass(frozen=True, slots=True)
class AuditPage:
    """What the page shows."""

    entries: list[dict[str, Any]] | None
    """None: the key may not see them."""
    asked: dict[str, str]
    days: int
    next_address: str | None = None
    problem: str = ""
    views: Any = VIEWS
    view: str = "/audit"


async def read(visitor: Visitor, asked: dict[str, str], days: int, cursor: str | None, *, now: datetime) -> AuditPage:
    """Ask the API for changes, the newest first; a refused question is said beside the form."""
    if not visitor.may("admin"):
        return AuditPage(None, asked, days)
    conditions = {name: value for name, value in asked.items() if value}
    since = (now - timedelta(days=days)).isoformat() if days else None
    try:
        page = await visitor.client.get("/v1/audit", limit=PAGE_SIZE, cursor=cursor, since=since, **conditions)
    except ApiError as error:
        if error.status not in (400, 422):
            raise
        return AuditPage([], asked, days, problem=str(error))
    following = page["next_cursor"]
    query = query_of({**conditions, "days": str(days), "cursor": following or ""})
    return AuditPage(page["entries"], asked, days, f"/settings/audit?{query}" if following else None)


@router.get("")
async def audit(
    *,
    request: Request,
    visitor: VisitorDependency,
    kind: Word = "",
    name: Word = "",
    by: Word = "",
    days: Annotated[int, Query(ge=0, le=400)] = 0,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> HTMLResponse:
    """Show who changed what."""
    frame = Frame.of(request, visitor, title="Audit", section="/settings")
    asked = {"kind": kind.strip(), "name": name.strip(), "by": by.strip()}
    page = await read(visitor, asked, days, cursor, now=frame.now)
    return await show(request, TEMPLATE, frame, page=page, kinds=KINDS, day_choices=DAYS)
