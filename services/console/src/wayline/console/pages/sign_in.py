"""Sign in by an API key, sign out, and choose a theme."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.console.access.visitor import THEME_COOKIE, THEMES, PostedForm, VisitorDependency, cookie_name, theme_of
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import kept_searches
from wayline.console.pages.frame import go, own_address
from wayline.console.render.environment import Templates

router = APIRouter()
TEMPLATE = "sign_in.html"
KEY_MAX_CHARS = 500
THEME_KEPT_S = 365 * 86_400


def page(request: Request, *, then: str, problem: str = "", status: int = 200) -> HTMLResponse:
    """Answer with the form for a key."""
    templates: Templates = request.app.state.templates
    html = templates.render(TEMPLATE, then=own_address(then), problem=problem, theme=theme_of(request))
    return HTMLResponse(html, status)


@router.get("/sign-in")
async def ask_for_key(request: Request, then: str = "/") -> HTMLResponse:
    """Show the form for a key."""
    return page(request, then=then)


@router.post("/sign-in")
async def sign_in(
    request: Request,
    key: Annotated[str, Form(max_length=KEY_MAX_CHARS)] = "",
    then: Annotated[str, Form(max_length=2_000)] = "/",
) -> Response:
    """Keep a key in the browser's sealed cookie, once the gateway takes it."""
    key = key.strip()
    if not key or not (key.isascii() and key.isprintable()):
        return page(request, then=then, problem="This is no API key; one begins with wl_.", status=422)
    try:
        # Not one of those that are kept: anybody can try keys here.
        async with request.app.state.clients.begin(key) as client:
            await client.get("/v1/me")
    except ApiError as error:
        if error.status not in (401, 403):
            raise
        return page(request, then=then, problem=f"The gateway refused this key: {error}.", status=403)
    request.state.begun = request.app.state.seal.begin(key)
    return go(own_address(then))


@router.post("/sign-out")
async def sign_out(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Forget the key, and the searches that were kept: the next person at this browser may be another."""
    answer = go("/sign-in")
    secure = request.app.state.is_tls
    for name, path in ((cookie_name(request), "/"), (kept_searches.COOKIE, kept_searches.PATH)):
        answer.delete_cookie(name, path=path, secure=secure, httponly=True, samesite="lax")
    request.state.begun = None
    return answer


@router.post("/theme")
async def choose_theme(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Keep a theme in the browser."""
    chosen = field_of(form, "theme")
    answer = go(own_address(field_of(form, "then") or "/"))
    if chosen in THEMES:
        answer.set_cookie(
            THEME_COOKIE, chosen, max_age=THEME_KEPT_S, path="/", secure=request.app.state.is_tls, samesite="lax"
        )
    return answer
