"""Sessions: conversations of which each job is a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show

router = APIRouter()
TEMPLATE = "sessions/list.html"
PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Sessions:
    """What the list shows."""

    sessions: list[dict[str, Any]]
    next_cursor: str | None
    agent: str = ""
    user: str = ""


async def read(client: Client, *, agent: str = "", user: str = "", cursor: str | None = None) -> Sessions:
    """Ask the API for one page of sessions."""
    page = await client.get("/v1/sessions", agent=agent or None, user_id=user or None, limit=PAGE_SIZE, cursor=cursor)
    return Sessions(page["sessions"], page["next_cursor"], agent, user)


@router.get("/sessions")
async def sessions(
    request: Request,
    visitor: VisitorDependency,
    agent: Annotated[str, Query(max_length=64)] = "",
    user: Annotated[str, Query(max_length=128)] = "",
    cursor: Annotated[str | None, Query()] = None,
) -> HTMLResponse:
    """Show the sessions, the last used first."""
    frame = Frame.of(request, visitor, title="Sessions", section="/sessions")
    found = await read(visitor.client, agent=agent, user=user, cursor=cursor)
    return await show(request, TEMPLATE, frame, page=found)
