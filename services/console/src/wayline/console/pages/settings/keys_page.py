"""API keys: made and shown once, listed, revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import confirm
from wayline.console.pages.form_values import WrongField, whole_of
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of
from wayline.console.pages.settings.settings_page import VIEWS

router = APIRouter(prefix="/settings/keys")
TEMPLATE = "settings/keys.html"
PAGE_SIZE = 50
EXPIRIES: Final = (("", "when it is revoked"), ("1", "in a day"), ("30", "in 30 days"), ("90", "in 90 days"))
"""Days until a key stops working, and their title."""
METERS: Final = {"requests": "Requests a minute", "jobs": "New jobs a minute"}
TYPED: Final = ("name", "user_id", "days", *METERS)
KeyId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


@dataclass(frozen=True, slots=True)
class KeysPage:
    """What the page shows."""

    keys: list[dict[str, Any]] | None
    """None: the key may not see them."""
    next_cursor: str | None = None
    scopes: tuple[str, ...] = ()
    scopes_help: str = ""
    created: dict[str, Any] | None = None
    """A key that was just made: its secret is in this page and nowhere else."""
    draft: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    revoked: bool = False
    views: Any = VIEWS
    view: str = "/keys"


async def read(request: Request, visitor: Visitor, *, revoked: bool = False, cursor: str | None = None) -> KeysPage:
    """Ask the API for the keys of the tenant."""
    if not visitor.may("admin"):
        return KeysPage(None)
    page, schemas = await asyncio.gather(
        visitor.client.get("/v1/keys", limit=PAGE_SIZE, cursor=cursor, revoked=revoked),
        request.app.state.schemas.read(visitor.client),
    )
    scopes = schemas.definitions["KeyBody"]["properties"]["scopes"]
    return KeysPage(
        keys=page["keys"],
        next_cursor=page["next_cursor"],
        scopes=tuple(scopes["items"]["enum"]),
        scopes_help=scopes.get("description", "").replace("`", ""),
        revoked=revoked,
    )


def body_of(get: Callable[[str], str], scopes: list[str], *, now: datetime) -> dict[str, Any]:
    """Return the key that a form asks for. Raises WrongField: what is not understood must not be left out."""
    body: dict[str, Any] = {"name": get("name"), "scopes": scopes}
    if get("user_id"):
        body["user_id"] = get("user_id")
    days = whole_of(get("days"), what="Days until it stops working")
    if days is not None:
        body["expires_at"] = (now + timedelta(days=days)).isoformat()
    rates = {meter: whole_of(get(meter), what=title) for meter, title in METERS.items()}
    limits = {meter: {"per_minute": rate} for meter, rate in rates.items() if rate is not None}
    return body | ({"limits": limits} if limits else {})


def frame_of(request: Request, visitor: Visitor) -> Frame:
    return Frame.of(request, visitor, title="Keys", section="/settings")


@router.get("")
async def keys(
    request: Request,
    visitor: VisitorDependency,
    revoked: bool = False,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> HTMLResponse:
    """Show the keys of the tenant."""
    page = await read(request, visitor, revoked=revoked, cursor=cursor)
    return await show(request, TEMPLATE, frame_of(request, visitor), page=page, expiries=EXPIRIES)


@router.post("")
async def create(request: Request, visitor: VisitorDependency, form: PostedForm) -> HTMLResponse:
    """Make a key, and show it in this one answer."""
    frame = frame_of(request, visitor)
    scopes = [one for one in form.getlist("scope") if isinstance(one, str)]
    typed = {name: field_of(form, name) for name in TYPED}
    created, problem = None, ""
    try:
        created = await visitor.client.post("/v1/keys", body_of(typed.__getitem__, scopes, now=frame.now))
    except (WrongField, ApiError) as error:
        problem = reason_of(error) if isinstance(error, ApiError) else str(error)
    try:
        page = await read(request, visitor)
    except ApiError as error:
        if created is None or error.status != 401:
            raise
        # With the first key the gateway closes, also to this browser.
        page = KeysPage([])
    page = replace(page, created=created, problem=problem, draft={**typed, "scopes": scopes} if problem else {})
    return await show(request, TEMPLATE, frame, status=422 if problem else 200, page=page, expiries=EXPIRIES)


@router.post("/{key_id}/revoke")
async def revoke(request: Request, visitor: VisitorDependency, form: PostedForm, key_id: KeyId) -> Response:
    """Ask, and revoke a key."""
    if not confirm.is_confirmed(form):
        key = await visitor.client.get(f"/v1/keys/{key_id}")
        own = ("It is the key that this browser is signed in with.",) if key_id == visitor.me["key_id"] else ()
        question = confirm.Confirmation.of(
            "revoke",
            f"the key {key['name']}",
            at=f"/settings/keys/{key_id}",
            back="/settings/keys",
            sentences=("Every gateway refuses it within seconds, and for good.", *own),
            listed=(f"{key['prefix']}… for {', '.join(key['scopes'])}",),
            scope="admin",
        )
        return await confirm.ask(request, visitor, question, section="/settings")
    await visitor.client.delete(f"/v1/keys/{key_id}")
    return go("/settings/keys", done="revoked")
