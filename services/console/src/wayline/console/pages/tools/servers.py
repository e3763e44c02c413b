"""MCP servers: their state, what they changed and who that touches, and what is done about one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import confirm
from wayline.console.pages.confirm import Confirmation
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of, told_of
from wayline.console.pages.tools.catalogue import TABS

router = APIRouter(prefix="/tools/servers")
TEMPLATE = "tools/servers.html"
ONE_TEMPLATE = "tools/one_server.html"
PAGE_SIZE = 100
SCOPE: Final = "admin"
STATES: Final = {
    "connected": "completed",
    "connecting": "running",
    "away": "failed",
    "needs_authorization": "parked",
    "disabled": "cancelled",
}
"""How each state looks: as a job's status that means as much."""

ServerName: TypeAlias = Annotated[str, Path(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$", max_length=32)]


@dataclass(frozen=True, slots=True)
class Servers:
    """What the list shows."""

    servers: list[dict[str, Any]]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class OneServer:
    """What the page of one server shows."""

    server: dict[str, Any]
    impact: dict[str, Any] | None = None
    """Who uses its tools, and which calls the definitions that wait would refuse; None: it was not asked for."""
    impact_problem: str = ""
    report: dict[str, Any] | None = None
    """What a test found just now."""
    logins: list[dict[str, Any]] | None = None
    """Users who are logged in; None: users do not log in to it."""
    login_url: str = ""
    """Where a login goes on that was just begun."""
    problem: str = ""

    @property
    def at(self) -> str:
        return f"/tools/servers/{self.server['name']}"

    @property
    def is_own(self) -> bool:
        """Return whether the tenant may change it: others are the installation's, or services on the bus."""
        return self.server["of"] == "tenant" and self.server["service"] is None

    @property
    def oauth(self) -> dict[str, Any] | None:
        return (self.server["config"] or {}).get("oauth")

    @property
    def config(self) -> dict[str, Any]:
        """Return what is set of its configuration."""
        given = self.server["config"] or {}
        return {name: value for name, value in given.items() if value not in (None, False, {}, []) and name != "limits"}

    @property
    def touched(self) -> list[dict[str, Any]]:
        """Return the tools that a change touches, those whose calls would fail first."""
        tools = self.impact["tools"] if self.impact else []
        return sorted((tool for tool in tools if tool["change"] != "unchanged"), key=lambda tool: -tool["would_fail"])


def server_path(name: str) -> str:
    """Return where the API has a server."""
    return f"/v1/mcp/servers/{quote(name, safe='')}"


async def read(
    client: Client, name: str, *, impact: bool = False, report: dict[str, Any] | None = None, problem: str = ""
) -> OneServer:
    """Ask the API for a server; for its impact where definitions wait as well, as that decides whether to approve."""
    server = await client.get(server_path(name))
    found, why = None, ""
    if impact or server["changes"]:
        try:
            found = await client.get(f"{server_path(name)}/impact")
        except ApiError as error:
            why = told_of(error)
    logins = None
    if ((server["config"] or {}).get("oauth") or {}).get("credentials") == "user":
        logins = (await client.get(f"{server_path(name)}/logins", limit=PAGE_SIZE))["logins"]
    return OneServer(server, found, why, report, logins, problem=problem)


async def _show(request: Request, visitor: Visitor, page: OneServer) -> HTMLResponse:
    frame = Frame.of(request, visitor, title=page.server["name"], section="/tools")
    values = {"page": page, "states": STATES, "scope": SCOPE}
    return await show(request, ONE_TEMPLATE, frame, status=422 if page.problem else 200, **values)


@router.get("")
async def servers(request: Request, visitor: VisitorDependency, cursor: str | None = None) -> HTMLResponse:
    """Show the servers."""
    page = await visitor.client.get("/v1/mcp/servers", limit=PAGE_SIZE, cursor=cursor)
    frame = Frame.of(request, visitor, title="Servers", section="/tools")
    found = Servers(page["servers"], page["next_cursor"])
    return await show(request, TEMPLATE, frame, page=found, tabs=TABS, states=STATES, scope=SCOPE)


@router.get("/{name}")
async def one_server(
    request: Request, visitor: VisitorDependency, name: ServerName, impact: Annotated[bool, Query()] = False
) -> HTMLResponse:
    """Show a server."""
    return await _show(request, visitor, await read(visitor.client, name, impact=impact))


async def _act(
    request: Request, visitor: Visitor, name: str, *, path: str, done: str, body: dict[str, Any] | None = None
) -> Response:
    """Do something about a server and lead back to it; a refusal is shown there."""
    try:
        await visitor.client.post(f"{server_path(name)}/{path}", body)
    except ApiError as error:
        return await _show(request, visitor, await read(visitor.client, name, problem=reason_of(error)))
    return go(f"/tools/servers/{name}", done=done)


@router.post("/{name}/test")
async def test(request: Request, visitor: VisitorDependency, _: PostedForm, name: ServerName) -> Response:
    """Connect to a server once more, and show what it offers or why it cannot be reached."""
    report, problem = None, ""
    try:
        report = await visitor.client.post(f"{server_path(name)}/test")
    except ApiError as error:
        problem = reason_of(error)
    return await _show(request, visitor, await read(visitor.client, name, report=report, problem=problem))


@router.post("/{name}/enable")
async def enable(request: Request, visitor: VisitorDependency, _: PostedForm, name: ServerName) -> Response:
    """Connect to a server again."""
    return await _act(request, visitor, name, path="enable", done="enabled")


@router.post("/{name}/disable")
async def disable(request: Request, visitor: VisitorDependency, _: PostedForm, name: ServerName) -> Response:
    """Take a server's tools away and keep its configuration."""
    return await _act(request, visitor, name, path="disable", done="disabled")


@router.post("/{name}/approve")
async def approve(request: Request, visitor: VisitorDependency, form: PostedForm, name: ServerName) -> Response:
    """Approve the definitions that were shown and ticked, by their hashes."""
    body = {"sha256": [str(value) for value in form.getlist("sha256")]}
    return await _act(request, visitor, name, path="approve", body=body, done="approved")


@router.post("/{name}/remove")
async def remove(request: Request, visitor: VisitorDependency, form: PostedForm, name: ServerName) -> Response:
    """Remove a server with its secrets, after asking once more."""
    at = f"/tools/servers/{name}"
    if not confirm.is_confirmed(form):
        lost = ("Its configuration, its secrets and its approvals are gone then. Calls under way end first.",)
        question = Confirmation.of("remove", f"the server {name}", at=at, sentences=lost, scope=SCOPE)
        return await confirm.ask(request, visitor, question, section="/tools")
    return await _delete(request, visitor, name, server_path(name), to="/tools/servers")


async def _delete(request: Request, visitor: Visitor, name: str, path: str, *, to: str) -> Response:
    try:
        await visitor.client.delete(path)
    except ApiError as error:
        return await _show(request, visitor, await read(visitor.client, name, problem=reason_of(error)))
    return go(to, done="removed")


@router.post("/{name}/login")
async def log_in(request: Request, visitor: VisitorDependency, form: PostedForm, name: ServerName) -> Response:
    """Begin a login, the tenant's or a user's, and show the link at which it goes on.

    A link and no redirect: the policy lets no form lead to another host.
    """
    url, problem = "", ""
    try:
        url = await _login_url(visitor.client, name, form)
    except ApiError as error:
        problem = reason_of(error)
    page = await read(visitor.client, name, problem=problem)
    is_web = urlsplit(url).scheme in ("http", "https")
    return await _show(
        request,
        visitor,
        OneServer(page.server, page.impact, page.impact_problem, None, page.logins, url if is_web else "", problem),
    )


async def _login_url(client: Client, name: str, form: FormData) -> str:
    user_id = field_of(form, "user_id")
    begun = (
        await client.post(f"{server_path(name)}/logins", {"user_id": user_id})
        if user_id
        else await client.post(f"{server_path(name)}/authorize")
    )
    return begun["url"]


@router.post("/{name}/forget")
async def forget(request: Request, visitor: VisitorDependency, form: PostedForm, name: ServerName) -> Response:
    """Forget the tokens of a login."""
    user_id = field_of(form, "user_id")
    path = f"logins?user_id={quote(user_id, safe='')}" if user_id else "authorization"
    return await _delete(request, visitor, name, f"{server_path(name)}/{path}", to=f"/tools/servers/{name}")
