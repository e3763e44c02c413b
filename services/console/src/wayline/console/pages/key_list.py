"""The keys that move through the console, as a page: the dialog that `?` opens needs scripts, as the keys do."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show

router = APIRouter()
TEMPLATE = "keys.html"


@router.get("/keys")
async def keys(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the keys."""
    return await show(request, TEMPLATE, Frame.of(request, visitor, title="Keys", section=""))
