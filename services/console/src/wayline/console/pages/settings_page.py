"""Settings: what the agents of a tenant do where they do not say otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show

router = APIRouter(prefix="/settings")
TEMPLATE = "settings/agents.html"


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """What the form shows."""

    settings: dict[str, Any]


async def read(client: Client) -> SettingsPage:
    """Ask the API for the settings in force."""
    return SettingsPage(await client.get("/v1/settings"))


@router.get("")
async def settings(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the settings."""
    frame = Frame.of(request, visitor, title="Settings", section="/settings")
    return await show(request, TEMPLATE, frame, page=await read(visitor.client))
