"""Secrets that MCP servers refer to by name: stored, replaced and deleted; values are never shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import confirm
from wayline.console.pages.confirm import Confirmation
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of
from wayline.console.pages.tools.catalogue import TABS

router = APIRouter(prefix="/tools/secrets")
TEMPLATE = "tools/secrets.html"
PATH: Final = "/v1/mcp/secrets"
SCOPE: Final = "admin"


@dataclass(frozen=True, slots=True)
class Secrets:
    """What the page shows."""

    secrets: list[dict[str, Any]]
    rotation: dict[str, Any] | None = None
    """How far all secrets are encrypted with the newest key, once that was asked for."""
    name: str = ""
    """What was written as a name; a value is never shown again."""
    problem: str = ""


async def _show(
    request: Request, visitor: Visitor, *, rotation: dict[str, Any] | None = None, name: str = "", problem: str = ""
) -> HTMLResponse:
    found = await visitor.client.whole(PATH, "secrets")
    page = Secrets(found["secrets"], rotation, name, problem)
    frame = Frame.of(request, visitor, title="Secrets", section="/tools")
    return await show(request, TEMPLATE, frame, status=422 if problem else 200, page=page, tabs=TABS, scope=SCOPE)


@router.get("")
async def secrets(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the names of the secrets and who refers to each."""
    return await _show(request, visitor)


@router.post("")
async def put(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Store a secret, or another value of it."""
    name, value = field_of(form, "name"), form.get("value")
    if not name:
        return await _show(request, visitor, problem="give it a name: letters, digits, _, . and -")
    condition = {"If-None-Match": "*"} if "new" in form else None
    try:
        await visitor.client.put(f"{PATH}/{quote(name, safe='')}", {"value": value or ""}, headers=condition)
    except ApiError as error:
        return await _show(request, visitor, name=name, problem=reason_of(error))
    return go("/tools/secrets", done="saved")


@router.post("/delete")
async def delete(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Delete a secret that no server refers to, after asking once more."""
    name = field_of(form, "name")
    if not confirm.is_confirmed(form):
        question = Confirmation.of(
            "delete",
            f"the secret {name}",
            at="/tools/secrets",
            sentences=("Its value is gone then.",),
            fields=confirm.fields_of(form),
            scope=SCOPE,
        )
        return await confirm.ask(request, visitor, question, section="/tools")
    try:
        await visitor.client.delete(f"{PATH}/{quote(name, safe='')}")
    except ApiError as error:
        return await _show(request, visitor, problem=reason_of(error))
    return go("/tools/secrets", done="removed")


@router.post("/rotate")
async def rotate(request: Request, visitor: VisitorDependency, _: PostedForm) -> Response:
    """Encrypt with the newest key some of what older ones encrypted."""
    try:
        rotation = await visitor.client.post(f"{PATH}/rotate")
    except ApiError as error:
        return await _show(request, visitor, problem=reason_of(error))
    return await _show(request, visitor, rotation=rotation)
