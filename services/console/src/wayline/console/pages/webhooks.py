"""Webhooks: where a tenant is told what happens, and what was sent there."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show

router = APIRouter()
TEMPLATE = "webhooks/list.html"


async def read(client: Client) -> list[dict[str, Any]]:
    """Ask the API for all webhooks."""
    return (await client.whole("/v1/webhooks", "webhooks"))["webhooks"]


@router.get("/webhooks")
async def webhooks(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the webhooks."""
    frame = Frame.of(request, visitor, title="Webhooks", section="/webhooks")
    return await show(request, TEMPLATE, frame, webhooks=await read(visitor.client))
