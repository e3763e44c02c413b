"""Documents: a list of them, found by name and by how far they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show

router = APIRouter()
TEMPLATE = "knowledge/documents.html"
PAGE_SIZE = 50
STATES: Final = ("queued", "indexing", "ready", "failed")

State: TypeAlias = Literal["queued", "indexing", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class Documents:
    """What the list shows."""

    documents: list[dict[str, Any]]
    next_cursor: str | None
    name: str = ""
    state: str = ""


async def read(client: Client, *, name: str = "", state: State | None = None, cursor: str | None = None) -> Documents:
    """Ask the API for one page of documents; words without a `*` are found anywhere in a name."""
    wanted = name if "*" in name or not name else f"*{name}*"
    page = await client.get("/v1/documents", name=wanted or None, status=state, limit=PAGE_SIZE, cursor=cursor)
    return Documents(page["documents"], page["next_cursor"], name, state or "")


@router.get("/knowledge")
async def documents(
    request: Request,
    visitor: VisitorDependency,
    name: Annotated[str, Query(max_length=200)] = "",
    state: Annotated[State | None, Query()] = None,
    cursor: Annotated[str | None, Query()] = None,
) -> HTMLResponse:
    """Show the documents."""
    frame = Frame.of(request, visitor, title="Knowledge", section="/knowledge")
    found = await read(visitor.client, name=name, state=state, cursor=cursor)
    return await show(request, TEMPLATE, frame, page=found, states=STATES)
