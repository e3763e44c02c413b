"""Adding and changing an MCP server: tried, its impact seen, saved as it was shown; or taken from a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of
from wayline.console.pages.tools.server_form import EFFECTS, TRANSPORTS, ServerForm, WrongServer, of_config, written
from wayline.console.pages.tools.servers import ServerName, server_path
from wayline.console.render.json_text import parsed

router = APIRouter()
TEMPLATE = "tools/edit_server.html"
IMPORT_TEMPLATE = "tools/import_servers.html"
SCOPE: Final = "admin"
EXAMPLE: Final = """{
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "@example/files-mcp@1.4.0", "/srv"]}
  }
}"""


@dataclass(frozen=True, slots=True)
class EditServer:
    """What the form shows: what is written, and what was found out about it."""

    form: ServerForm
    is_new: bool = True
    tag: str = ""
    """Of the server as the form began with it: another one is not overwritten."""
    shown: str = ""
    """The hash of what a test has shown: that is approved when it is saved, and nothing else."""
    report: dict[str, Any] | None = None
    impact: dict[str, Any] | None = None
    problem: str = ""
    told: str = ""
    """What is to be corrected of a server that was just saved."""

    @property
    def action(self) -> str:
        return "/tools/add-server" if self.is_new else f"/tools/servers/{self.form.name}/edit"

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Return the tools whose effects are chosen: those that a test found, then others that have one."""
        found = list(self.report["tools"]) if self.report else []
        names = {tool["name"] for tool in found}
        more = [name for name in self.form.effects if name not in names]
        return found + [{"name": name, "description": "", "proposed": None, "tokens": 0} for name in more]

    @property
    def tokens(self) -> int:
        """Return what all tools that a test found take in a prompt."""
        return sum(tool["tokens"] for tool in self.report["tools"]) if self.report else 0


@dataclass(frozen=True, slots=True)
class Import:
    """A client's file, and what would become of its servers."""

    text: str = EXAMPLE
    replace: bool = False
    report: dict[str, Any] | None = None
    problem: str = ""


async def _show(request: Request, visitor: Visitor, page: EditServer) -> HTMLResponse:
    title = "Add server" if page.is_new else f"Change {page.form.name}"
    frame = Frame.of(request, visitor, title=title, section="/tools")
    values = {"page": page, "transports": TRANSPORTS, "effect_names": EFFECTS, "scope": SCOPE}
    return await show(request, TEMPLATE, frame, status=422 if page.problem else 200, **values)


@router.get("/tools/add-server")
async def new_server(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the empty form."""
    return await _show(request, visitor, EditServer(ServerForm()))


@router.get("/tools/servers/{name}/edit")
async def edit_server(request: Request, visitor: VisitorDependency, name: ServerName) -> HTMLResponse:
    """Show a server as it is saved."""
    return await _show(request, visitor, await read(visitor.client, name))


async def read(client: Client, name: str) -> EditServer:
    """Ask the API for a server as it is saved."""
    found = await client.tagged(server_path(name))
    return EditServer(of_config(name, found.body["config"] or {}), is_new=False, tag=found.tag or "")


@router.post("/tools/add-server")
async def add_server(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Try a new server, show its impact, or save it."""
    return await _act(request, visitor, form, EditServer(written(form), shown=field_of(form, "shown")), None)


@router.post("/tools/servers/{name}/edit")
async def change_server(request: Request, visitor: VisitorDependency, form: PostedForm, name: ServerName) -> Response:
    """Try a changed server, show its impact, or save it."""
    saved = (await visitor.client.get(server_path(name)))["config"]
    filled = replace(written(form), name=name)
    tag, shown = field_of(form, "tag"), field_of(form, "shown")
    return await _act(request, visitor, form, EditServer(filled, is_new=False, tag=tag, shown=shown), saved)


async def _act(
    request: Request, visitor: Visitor, form: FormData, page: EditServer, saved: dict[str, Any] | None
) -> Response:
    """Do what one of the form's buttons says, and show the form again unless the server is saved."""
    do = field_of(form, "do")
    try:
        if not page.form.name:
            raise WrongServer("give it a name: small letters, digits and -")
        config = page.form.config(saved)
        if do == "save":
            warnings = await _saved(visitor.client, page, config)
            if not warnings:
                return go(f"/tools/servers/{page.form.name}", done="saved")
            return await _show(request, visitor, replace(await read(visitor.client, page.form.name), told=warnings))
        if do in ("test", "proposed"):
            page = await _tested(visitor.client, page, config)
        if do == "proposed" and page.report:
            proposed = {tool["name"]: tool["proposed"] for tool in page.report["tools"] if tool["proposed"]}
            effects = {**proposed, **{tool: effect for tool, effect in page.form.effects.items() if effect}}
            page = replace(page, form=replace(page.form, effects=effects))
        if do == "impact":
            page = replace(page, impact=await visitor.client.post(f"{server_path(page.form.name)}/impact", config))
    except WrongServer as error:
        page = replace(page, problem=str(error))
    except ApiError as error:
        page = replace(page, problem=reason_of(error))
    return await _show(request, visitor, page)


async def _tested(client: Client, page: EditServer, config: dict[str, Any]) -> EditServer:
    params = None if page.is_new else {"name": page.form.name}
    report = await client.post("/v1/mcp/servers/test", config, params=params)
    return replace(page, report=report, shown=report["sha256"])


async def _saved(client: Client, page: EditServer, config: dict[str, Any]) -> str:
    """Save a server, and return what is to be corrected of it; empty: nothing."""
    condition = {"If-None-Match": "*"} if page.is_new else {"If-Match": page.tag} if page.tag else None
    params = {"shown": page.shown} if page.shown else None
    view = await client.put(server_path(page.form.name), config, params=params, headers=condition)
    return " ".join(view["warnings"])


@router.get("/tools/import-servers")
async def import_form(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show where a client's file is put."""
    return await _show_import(request, visitor, Import())


async def _show_import(request: Request, visitor: Visitor, page: Import) -> HTMLResponse:
    frame = Frame.of(request, visitor, title="Import servers", section="/tools")
    return await show(request, IMPORT_TEMPLATE, frame, status=422 if page.problem else 200, page=page, scope=SCOPE)


@router.post("/tools/import-servers")
async def import_servers(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Show what would be saved of a client's file, or save it."""
    page = Import(field_of(form, "text"), "replace" in form)
    try:
        params = {"dry_run": str(field_of(form, "do") != "save").lower(), "replace": str(page.replace).lower()}
        report = await visitor.client.post("/v1/mcp/servers/import", parsed(page.text), params=params)
        page = replace(page, report=report)
    except ValueError as error:
        page = replace(page, problem=f"this is no JSON: {error}")
    except ApiError as error:
        page = replace(page, problem=reason_of(error))
    return await _show_import(request, visitor, page)
