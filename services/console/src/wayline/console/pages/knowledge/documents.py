"""Documents: a list of them, found by name, by what describes them and by how far they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.refusal import reason_of
from wayline.console.render.addresses import query_of

router = APIRouter()
TEMPLATE = "knowledge/documents.html"
PAGE_SIZE = 50
STATES: Final = ("queued", "indexing", "ready", "failed")

State: TypeAlias = Literal["queued", "indexing", "ready", "failed", ""]


@dataclass(frozen=True, slots=True)
class Documents:
    """What the list shows."""

    documents: list[dict[str, Any]]
    next_cursor: str | None
    wanted: dict[str, str] = field(default_factory=dict)
    """The conditions, by the names of their fields."""
    problem: str = ""

    @property
    def is_narrowed(self) -> bool:
        return any(self.wanted.values())

    @property
    def next_address(self) -> str | None:
        """Return the address of the next page; None: this is the last."""
        if self.next_cursor is None:
            return None
        kept = {name: value for name, value in self.wanted.items() if value}
        return f"/knowledge?{query_of({**kept, 'cursor': self.next_cursor})}"


async def read(client: Client, wanted: dict[str, str], *, cursor: str | None = None) -> Documents:
    """Ask the API for one page of documents; words without a `*` are found anywhere in a name."""
    name = wanted["name"]
    asked = {
        "name": f"*{name}*" if name and "*" not in name else name,
        "status": wanted["state"],
        "collection": wanted["collection"],
        "language": wanted["language"].lower(),
    }
    given = {name: value for name, value in asked.items() if value}
    try:
        page = await client.get("/v1/documents", limit=PAGE_SIZE, cursor=cursor, **given)
    except ApiError as error:
        return Documents([], None, wanted, reason_of(error))
    return Documents(page["documents"], page["next_cursor"], wanted)


@router.get("/knowledge")
async def documents(
    request: Request,
    visitor: VisitorDependency,
    *,
    name: Annotated[str, Query(max_length=200)] = "",
    collection: Annotated[str, Query(max_length=200)] = "",
    language: Annotated[str, Query(max_length=8)] = "",
    state: Annotated[State, Query()] = "",
    cursor: Annotated[str | None, Query()] = None,
) -> HTMLResponse:
    """Show the documents."""
    frame = Frame.of(request, visitor, title="Knowledge", section="/knowledge")
    wanted = {"name": name, "collection": collection, "language": language, "state": state}
    return await show(request, TEMPLATE, frame, page=await read(visitor.client, wanted, cursor=cursor), states=STATES)
