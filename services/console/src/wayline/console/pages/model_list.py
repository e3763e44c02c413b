"""Models: what each can do and costs, whether its provider answers now, and what it was used for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.frame import Frame, show

router = APIRouter()
TEMPLATE = "models/list.html"


@dataclass(frozen=True, slots=True)
class ModelCatalogue:
    """What the list shows."""

    cards: list[dict[str, Any]]
    usable: frozenset[str]


async def read(client: Client) -> ModelCatalogue:
    """Ask the API for the models."""
    found = await client.whole("/v1/models", "models")
    return ModelCatalogue(found["models"], frozenset(found["usable"]))


@router.get("/models")
async def models(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the models."""
    frame = Frame.of(request, visitor, title="Models", section="/models")
    return await show(request, TEMPLATE, frame, page=await read(visitor.client))
