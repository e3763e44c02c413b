"""What a browser does of a login to an MCP server: begin at a page of ours, and come back from where it consented."""

from __future__ import annotations

from hmac import compare_digest
from typing import Annotated, Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from wayline.contracts import ids
from wayline.contracts.errors import Reject, WaylineError
from wayline.contracts.server_logins import (
    AuthorizationUrl,
    FinishAuthorization,
    GetLogin,
    LoginView,
    OpenLogin,
    ServerAuthorized,
)
from wayline.gateway.handlers.shared.dependencies import GatewayDependency
from wayline.gateway.login_pages import (
    HEADERS,
    cookie_of,
    done_page,
    forget_cookie,
    new_browser,
    refusal_page,
    set_cookie,
    start_page,
)
from wayline.gateway.openapi import fails

router = APIRouter(prefix="/v1/mcp/oauth", tags=["mcp servers"])

START: Final = "/v1/mcp/oauth/start"
CALLBACK: Final = "/v1/mcp/oauth/callback"
CLIENT_DOCUMENT: Final = "/v1/mcp/oauth/client.json"
LOGIN_WITHIN_S: Final = 65.0
DOCUMENT_KEPT_S: Final = 3_600
FORM_MAX_BYTES: Final = 4 * 1024
FIELDS_MAX: Final = 10
SECRET_CHARS: Final = range(32, 129)
"""Of a cookie that can be one of ours."""

STATE_MAX_CHARS: Final = 500

State = Annotated[str, Query(min_length=1, max_length=STATE_MAX_CHARS)]


@router.get("/start", response_class=HTMLResponse, responses=fails(400))
async def show_login(gateway: GatewayDependency, request: Request, state: State) -> Response:
    """Show a person whose access a login gives to whom, before anything else is asked; it needs no key."""
    try:
        tenant = _tenant_of(state)
        login = await gateway.bus.ask(GetLogin(tenant=tenant, state=state), LoginView)
    except WaylineError as error:
        return _refused(request, error)
    browser = new_browser()
    answer = start_page(login, tenant=tenant, path=START, state=state, browser=browser)
    set_cookie(answer, state, browser, at=gateway.settings.reached_at)
    return answer


@router.post("/start", status_code=303, response_class=RedirectResponse, responses=fails(400, 413))
async def open_login(gateway: GatewayDependency, request: Request) -> Response:
    """Bind a login to the browser that was shown its page, and send it on to the authorization server."""
    try:
        form = await _form(request)
        state, sent = form.get("state", ""), form.get("browser", "")
        tenant = _tenant_of(state)
        known = request.cookies.get(cookie_of(state, at=gateway.settings.reached_at), "")
        # A page of others may send this form, but has neither seen ours nor does its request carry the cookie.
        if len(known) not in SECRET_CHARS or not compare_digest(known.encode(), sent.encode()):
            raise Reject(
                "this browser has not opened the login's page, or takes no cookies: open the link again",
                code="another_browser",
                status=400,
            )
        going = await gateway.bus.ask(OpenLogin(tenant=tenant, state=state, browser=known), AuthorizationUrl)
    except WaylineError as error:
        return _refused(request, error)
    return RedirectResponse(going.url, status_code=303, headers=HEADERS)


@router.get("/callback", response_class=HTMLResponse, responses=fails(400, 409))
async def finish_authorization(
    gateway: GatewayDependency,
    request: Request,
    state: State,
    code: Annotated[str | None, Query(max_length=8_000)] = None,
    iss: Annotated[str | None, Query(max_length=2_000)] = None,
) -> Response:
    """Finish a login in the browser that began it: its state counts once, and says for whom; it needs no key."""
    at = gateway.settings.reached_at
    known = request.cookies.get(cookie_of(state, at=at), "")
    browser = known if len(known) in SECRET_CHARS else None
    try:
        tenant = _tenant_of(state)
        ask = FinishAuthorization(tenant=tenant, state=state, code=code, iss=iss, browser=browser)
        done = await gateway.bus.ask(ask, ServerAuthorized, timeout_s=LOGIN_WITHIN_S)
        answer: Response = done_page(done.name, tenant=tenant, user_id=done.user_id)
    except WaylineError as error:
        answer = _refused(request, error)
    if browser is not None:
        forget_cookie(answer, state, at=at)
    return answer


@router.get("/client.json", responses=fails())
async def describe_client(gateway: GatewayDependency) -> JSONResponse:
    """Say who the client is that logs in: an authorization server reads this instead of registering it."""
    at = gateway.settings.reached_at
    document = {
        "client_id": f"{at}{CLIENT_DOCUMENT}",
        "client_name": "Wayline",
        "client_uri": at,
        "redirect_uris": [f"{at}{CALLBACK}"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    }
    return JSONResponse(document, headers={"Cache-Control": f"public, max-age={DOCUMENT_KEPT_S}"})


def _tenant_of(state: str) -> str:
    tenant = state.partition(".")[0]
    if len(state) > STATE_MAX_CHARS or not ids.is_tenant(tenant):
        raise Reject("this login is unknown: begin it again", code="invalid_state", status=400)
    return tenant


async def _form(request: Request) -> dict[str, str]:
    body = await request.body()
    if len(body) > FORM_MAX_BYTES:
        raise Reject("this form is too large", code="body_too_large", status=413)
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=FIELDS_MAX)
    except ValueError:
        raise Reject("this form has too many fields", code="bad_request", status=400) from None
    return {name: values[0] for name, values in fields.items()}


def _refused(request: Request, error: WaylineError) -> Response:
    """Return a refusal as a page where a person reads it; else raise it, as everywhere."""
    if "text/html" not in request.headers.get("accept", ""):
        raise error
    problem = error.problem()
    return refusal_page(problem.detail.rstrip("."), status=problem.status)
