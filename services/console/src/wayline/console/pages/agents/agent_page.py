"""An agent: its configuration as a form, with what it would be while one types."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.agents.agent_form import FormSchema, Section, read_tools, saved_config
from wayline.console.pages.agents.differences import Difference, differences
from wayline.console.pages.agents.tool_lists import State, ToolLists, ToolsNow
from wayline.console.pages.frame import Frame, go, show, show_region
from wayline.console.pages.model_choices import ModelGroup, model_groups
from wayline.console.render.form_rows import Get
from wayline.console.render.schema_form import problems_by_field

router = APIRouter()
TEMPLATE = "agents/agent.html"
DRAFT = "draft"
"""The name under which an agent is checked that has none yet."""
DOCUMENTS_OFFERED: Final = 100
NAME: Final = r"^[a-z0-9][a-z0-9_-]{0,63}$"
AgentName: TypeAlias = Annotated[str, Path(pattern=NAME)]
VIEWS: Final = (("", "Configuration"), ("/try", "Try it"), ("/versions", "Versions"), ("/uses", "Used by"))
"""What follows an agent's address, and the title of what is there."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What an agent would be; a problem where the API could not read it."""

    found: dict[str, Any] | None
    problem: str = ""

    @property
    def now(self) -> ToolsNow:
        """Return what its lists of tools come to."""
        found = self.found or {}
        loaded = frozenset(found.get("tools_loaded", ()))
        return ToolsNow(loaded | frozenset(found.get("tools_deferred", ())), loaded)


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One tool of the tenant, and what it is to the agent."""

    tool: dict[str, Any]
    tokens: int | None
    jobs: int
    """Of the agent's last ones, that called it."""
    state: State
    """What it is without the choice that the form makes."""
    choice: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a form needs beside the configuration that it shows."""

    schema: FormSchema
    tools: list[dict[str, Any]]
    models: list[ModelGroup]
    usage: dict[str, Any] | None
    """What its last jobs called; None: it had none, or nothing is known."""
    documents: Sequence[dict[str, Any]] = ()
    """The newest ones, of which one can be chosen to be pinned."""


@dataclass(frozen=True, slots=True)
class AgentPage:
    """What the form shows."""

    name: str
    version: int | None
    """None: it is new."""
    tag: str
    sections: list[Section]
    lists: ToolLists
    tools: list[ToolRow]
    checked: Checked
    around: Surroundings
    problem: str = ""
    theirs: list[Difference] = field(default_factory=list)
    """What was saved meanwhile, beside what the form says."""
    views: Sequence[tuple[str, str]] = VIEWS
    view: str = ""

    @property
    def proposed(self) -> dict[str, Any] | None:
        """Return which tools to load always, by what its jobs called."""
        return self.around.usage["tools_proposed"] if self.around.usage else None

    @property
    def settings_tools(self) -> str:
        return ", ".join(self.around.schema.settings["tools"])


async def surroundings(
    request: Request, client: Client, name: str | None, *, with_documents: bool = True
) -> Surroundings:
    """Ask the API for what every form of an agent needs."""
    schemas, settings, tools, models, usage, documents = await asyncio.gather(
        request.app.state.schemas.read(client),
        client.get("/v1/settings"),
        client.whole("/v1/tools", "tools"),
        client.whole("/v1/models", "models"),
        _usage(client, name),
        _documents(client) if with_documents else asyncio.sleep(0, []),
    )
    return Surroundings(FormSchema.of(schemas, settings), tools["tools"], model_groups(models), usage, documents)


async def _documents(client: Client) -> list[dict[str, Any]]:
    """Return documents that can be pinned; none where nobody can list them now."""
    try:
        return (await client.get("/v1/documents", limit=DOCUMENTS_OFFERED))["documents"]
    except ApiError as error:
        if error.status is None:
            raise
        return []


async def _usage(client: Client, name: str | None) -> dict[str, Any] | None:
    if name is None:
        return None
    found = (await client.get("/v1/tools/usage", agent=name))["agents"]
    return found[0] if found else None


async def check(client: Client, name: str, config: Mapping[str, Any]) -> Checked:
    """Ask what an agent would be; a configuration that cannot be read is said beside the form."""
    try:
        return Checked(await client.post(f"/v1/agents/{quote(name or DRAFT, safe='')}/check", config))
    except ApiError as error:
        if error.status not in (400, 413, 422):
            raise
        return Checked(None, str(error))


def page_of(
    name: str,
    config: Mapping[str, Any],
    *,
    around: Surroundings,
    checked: Checked,
    version: int | None,
    tag: str,
    typed: Get | None = None,
) -> AgentPage:
    """Return the form of a configuration; `typed`: the fields of the form that says it."""
    problems = problems_by_field(checked.problem)
    tokens = (checked.found or {}).get("tokens_by_tool", {})
    used = {one["tool"]: one["jobs"] for one in around.usage["tools"]} if around.usage else {}
    rows = [
        ToolRow(tool, tokens.get(tool["name"]), used.get(tool["name"], 0), checked.now.state(tool["name"]))
        for tool in around.tools
    ]
    sections = around.schema.sections(config, problems, typed)
    return AgentPage(name, version, tag, sections, ToolLists.of(config), rows, checked, around)


@router.get("/agents/{name}")
async def agent(request: Request, visitor: VisitorDependency, name: AgentName) -> Response:
    """Show an agent's configuration; of one that is deleted its versions."""
    try:
        found = await visitor.client.tagged(f"/v1/agents/{name}")
    except ApiError as error:
        if error.status != 404:
            raise
        return go(f"/agents/{name}/versions")
    around = await surroundings(request, visitor.client, name)
    config = saved_config(found.body)
    checked = await check(visitor.client, name, config)
    page = page_of(name, config, around=around, checked=checked, version=found.body["version"], tag=found.tag or "")
    return await show(request, TEMPLATE, frame_of(request, visitor, name), page=page)


@router.get("/new-agent")
async def new_agent(
    request: Request, visitor: VisitorDependency, copy_of: Annotated[str, Query(pattern=f"{NAME}|^$")] = ""
) -> HTMLResponse:
    """Show the form of a new agent, or of a copy of one."""
    around = await surroundings(request, visitor.client, None)
    config: dict[str, Any] = {}
    if copy_of:
        config = saved_config(await visitor.client.get(f"/v1/agents/{copy_of}"))
    checked = await check(visitor.client, "", config)
    name = f"{copy_of}-copy"[:64] if copy_of else ""
    page = page_of(name, config, around=around, checked=checked, version=None, tag="")
    return await show(request, TEMPLATE, frame_of(request, visitor, "New agent"), page=page)


def frame_of(request: Request, visitor: Visitor, title: str) -> Frame:
    return Frame.of(request, visitor, title=title, section="/agents")


@dataclass(frozen=True, slots=True)
class Draft:
    """A configuration as a form says it."""

    config: dict[str, Any]
    checked: Checked
    problems: dict[str, str]


def _texts_of(form: FormData) -> Get:
    """Return what gives a form's fields as texts."""

    def get(field: str) -> str | None:
        value = form.get(field)
        return value.strip() if isinstance(value, str) else None

    return get


async def draft_of(client: Client, name: str, form: FormData, around: Surroundings) -> Draft:
    """Read a form, and ask what its agent would be."""
    get = _texts_of(form)
    config, problems = around.schema.read(get, [one for one in form.getlist("inherit") if isinstance(one, str)])
    names = [tool["name"] for tool in around.tools]
    inherited = around.schema.settings["tools"]
    lists = read_tools(get, (), inherited=inherited)
    checked = await check(client, name, config | lists.fields())
    if checked.found is not None:
        wished = read_tools(get, names, now=lambda _: checked.now, inherited=inherited)
        if wished != lists:
            lists = wished
            checked = await check(client, name, config | lists.fields())
    return Draft(config | lists.fields(), checked, problems)


async def _drafted_page(
    client: Client, name: str, form: FormData, around: Surroundings, version: int | None
) -> tuple[AgentPage, Draft]:
    draft = await draft_of(client, name, form, around)
    config = draft.config
    if "propose" in form and around.usage and around.usage["tools_proposed"]:
        lists = replace(ToolLists.of(config), always=tuple(around.usage["tools_proposed"]["always"]))
        config = config | replace(lists, deferred=tuple(around.usage["tools_proposed"]["deferred"])).fields()
        draft = replace(draft, config=config, checked=await check(client, name, config))
    if draft.problems:
        detail = "; ".join(f"body.{field}: {message}" for field, message in draft.problems.items())
        draft = replace(draft, checked=replace(draft.checked, problem=detail))
    tag = field_of(form, "tag")
    typed = _texts_of(form)
    page = page_of(name, config, around=around, checked=draft.checked, version=version, tag=tag, typed=typed)
    return page, draft


@router.post("/agents/{name}")
async def save(request: Request, visitor: VisitorDependency, form: PostedForm, name: AgentName) -> Response:
    """Save an agent where it is as the form read it, or show what it would be."""
    client = visitor.client
    around = await surroundings(request, client, name)
    shown = field_of(form, "version")
    page, draft = await _drafted_page(client, name, form, around, int(shown) if shown.isdigit() else 1)
    if "save" in form and not page.checked.problem:
        try:
            await client.put(f"/v1/agents/{name}", draft.config, headers={"If-Match": page.tag})
            return go(f"/agents/{name}", done="agent-saved")
        except ApiError as error:
            if error.status is None or error.status >= 500:
                raise
            page = await _refused(client, page, draft, error)
    status = 422 if page.problem or ("save" in form and page.checked.problem) else 200
    return await show(request, TEMPLATE, frame_of(request, visitor, name), status=status, page=page)


async def _refused(client: Client, page: AgentPage, draft: Draft, error: ApiError) -> AgentPage:
    """Return the form with why it was not saved; where another was saved meanwhile, both are shown."""
    if error.status != 412:
        return replace(page, problem=str(error))
    found = await client.tagged(f"/v1/agents/{page.name}")
    theirs = differences(saved_config(found.body), draft.config | _defaults(found.body, draft.config))
    version = found.body["version"]
    said = (
        f"Version {version} was saved after this form was opened. What differs is shown below: save again to put yours "
        "over it, or open the agent anew."
    )
    return replace(page, problem=said, theirs=theirs, tag=found.tag or "", version=version)


def _defaults(saved: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a form leaves out because it is the default, as the saved agent has it."""
    inherits = frozenset(saved["inherits"])
    shown = saved["config"]
    return {name: value for name, value in shown.items() if name not in config and name not in inherits and not value}


@router.post("/new-agent")
async def create(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Save a new agent, never over one of the same name, or show what it would be."""
    client, name = visitor.client, field_of(form, "name")
    around = await surroundings(request, client, None)
    page, draft = await _drafted_page(client, "", form, around, None)
    page = replace(page, name=name)
    if "save" in form and not page.checked.problem:
        try:
            saved = await client.put(
                f"/v1/agents/{quote(name or '-', safe='')}", draft.config, headers={"If-None-Match": "*"}
            )
            return go(f"/agents/{saved['name']}", done="agent-saved")
        except ApiError as error:
            if error.status is None or error.status >= 500:
                raise
            taken = f"There is an agent {name} already: choose another name."
            page = replace(page, problem=taken if error.status == 412 else str(error))
    status = 422 if page.problem or ("save" in form and page.checked.problem) else 200
    return await show(request, TEMPLATE, frame_of(request, visitor, "New agent"), status=status, page=page)


@router.post("/agent-check")
async def checked_region(request: Request, visitor: VisitorDependency, form: PostedForm) -> HTMLResponse:
    """Show what the agent of a form would be, while one types."""
    name = field_of(form, "agent")
    around = await surroundings(request, visitor.client, None, with_documents=False)
    page, _ = await _drafted_page(visitor.client, name, form, around, None)
    return await show_region(request, TEMPLATE, "check", frame_of(request, visitor, name), page=page)
