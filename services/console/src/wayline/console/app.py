"""Puts the console together: its pages, the guard around them, and the pages that say what went wrong."""

from __future__ import annotations

import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from secrets import token_bytes
from typing import Any
from urllib.parse import quote

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from wayline.client import ApiError
from wayline.console.access.guard import Guard, add_headers
from wayline.console.access.sealed_cookie import COOKIE_MAX_CHARS, KEPT_S, CookieSeal
from wayline.console.access.visitor import Clients, ForeignForm, SignInNeeded, cookie_name, theme_of
from wayline.console.pages import (
    approvals,
    budgets,
    costs,
    dead_letters,
    front_page,
    job,
    job_actions,
    job_calls,
    job_code,
    job_fork,
    job_stream,
    jobs,
    kept_searches,
    key_list,
    kit,
    sessions,
    sign_in,
    submit,
    webhook_delivery,
    webhooks,
)
from wayline.console.pages.agents import routes as agents
from wayline.console.pages.api_schemas import SchemaReader
from wayline.console.pages.knowledge import routes as knowledge
from wayline.console.pages.knowledge import upload
from wayline.console.pages.models import routes as models
from wayline.console.pages.refusal import FAULT, page_told_of
from wayline.console.pages.schedules import routes as schedules
from wayline.console.pages.settings import routes as settings_pages
from wayline.console.pages.tools import routes as tools
from wayline.console.render.environment import Templates
from wayline.console.settings import COOKIE_KEY_BYTES, Settings
from wayline.console.static_files import StaticFiles

log = structlog.get_logger()
BODY_MAX_BYTES = 8 * 1024 * 1024
"""Of a form, which is in memory before it is known who sends it. A call's arguments stand in it twice, encoded."""
ROUTERS = (
    front_page.router,
    job_actions.router,
    kept_searches.router,
    jobs.router,
    submit.router,
    job_calls.router,
    job_code.router,
    job_fork.router,
    job_stream.router,
    job.router,
    approvals.router,
    tools.router,
    schedules.router,
    knowledge.router,
    sessions.router,
    costs.router,
    budgets.router,
    webhooks.router,
    webhook_delivery.router,
    dead_letters.router,
    key_list.router,
    kit.router,
    sign_in.router,
    agents.router,
    models.router,
    settings_pages.router,
)


TRACEBACK_MAX_CHARS = 8_000
TOLD = {
    404: ("There is no such page", "Look at the address again, or begin at Home."),
    405: (
        "There is nothing to read here",
        "This address takes a form of another page. Go back to it, or begin at Home.",
    ),
    413: ("The form is too large", f"A form may have {BODY_MAX_BYTES // 2**20} MB, and documents as much as is set."),
}
"""What a page says of a status that a request is refused with."""


def create_app(settings: Settings, *, clock: Callable[[], float] = time.time) -> FastAPI:
    """Return the console as an ASGI application."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await app.state.clients.close()

    app = FastAPI(
        title="Wayline console",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        max_body_size=BODY_MAX_BYTES,
    )
    key = settings.cookie_key
    app.state.seal = CookieSeal(bytes.fromhex(key.get_secret_value()) if key else token_bytes(COOKIE_KEY_BYTES), clock)
    app.state.clients = Clients(settings.gateway_url)
    app.state.zone = settings.time_zone
    app.state.templates = Templates(settings.zone)
    app.state.document_max_bytes = settings.document_max_bytes
    app.state.schemas = SchemaReader()
    app.state.is_tls = (settings.public_url or "").startswith("https://")
    # Routes are tried in turn, and a page has more files than anything else.
    app.mount("/static", StaticFiles())
    # Before the kinds of facts, whose addresses would take its own.
    for router in (upload.sending, submit.sending):
        app.include_router(router, max_body_size=settings.document_max_bytes)
    for router in ROUTERS:
        app.include_router(router)
    app.add_api_route("/health/live", _live, include_in_schema=False)
    app.add_exception_handler(SignInNeeded, _sign_in)
    app.add_exception_handler(ForeignForm, _foreign_form)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _wrong_address)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(404, _http_error)
    app.add_exception_handler(Exception, _fault)
    app.middleware("http")(_keep_session)
    app.add_middleware(Guard, public_url=settings.public_url)
    return app


async def _live() -> dict[str, str]:
    return {"status": "alive"}


async def _keep_session(request: Request, call_next: Any) -> Response:
    """Give the browser the session that was begun or renewed while its request was answered."""
    answer: Response = await call_next(request)
    begun = getattr(request.state, "begun", None)
    if begun is not None:
        value = request.app.state.seal.seal(begun)
        assert len(value) <= COOKIE_MAX_CHARS
        secure = request.app.state.is_tls
        answer.set_cookie(
            cookie_name(request), value, max_age=KEPT_S, path="/", secure=secure, httponly=True, samesite="lax"
        )
    return answer


async def _sign_in(request: Request, _: Exception) -> Response:
    """Ask for a key, and come back afterwards; a region or a stream only says that it has none."""
    if request.headers.get("sec-fetch-dest", "document") != "document":
        return Response(status_code=401)
    if request.method != "GET":
        told = "Sign in at Home, come back to the page before this one, and send it again."
        return problem_page(request, 401, "You are signed out", told)
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return Response(status_code=303, headers={"Location": f"/sign-in?then={quote(here, safe='')}"})


async def _foreign_form(request: Request, _: Exception) -> HTMLResponse:
    return problem_page(request, 403, "This form is too old", "Go back, reload the page, and send it again.")


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    if error.status == 401:
        return await _sign_in(request, error)
    return problem_page(request, *page_told_of(error))


async def _wrong_address(request: Request, error: Exception) -> HTMLResponse:
    assert isinstance(error, RequestValidationError)
    return problem_page(request, 404, "There is no such page", "Its address has a part that no page takes.")


async def _http_error(request: Request, error: Exception) -> HTMLResponse:
    status = getattr(error, "status_code", 404)
    title, detail = TOLD.get(status, ("This cannot be done", str(getattr(error, "detail", ""))))
    return problem_page(request, status, title, detail)


async def _fault(request: Request, error: Exception) -> HTMLResponse:
    # As text: structlog's own way of writing errors shows the values of variables, keys among them, and takes seconds.
    lines = "".join(traceback.format_exception(error))
    log.error(
        "a page failed", path=request.url.path, error=type(error).__name__, traceback=lines[-TRACEBACK_MAX_CHARS:]
    )
    answer = problem_page(request, *FAULT)
    # Faults are answered outside of the guard.
    add_headers(answer.headers)
    return answer


def problem_page(request: Request, status: int, title: str, detail: str) -> HTMLResponse:
    """Answer with a page that says what happened and what to do."""
    templates: Templates = request.app.state.templates
    html = templates.render("problem.html", title=title, detail=detail, status=status, theme=theme_of(request))
    return HTMLResponse(html, status)
