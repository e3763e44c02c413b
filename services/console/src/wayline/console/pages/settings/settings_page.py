"""Settings: what the agents of a tenant do where they do not say otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.agents.differences import Difference, differences
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.model_choices import ModelGroup, model_groups
from wayline.console.render.schema_form import ApiSchemas, SchemaField, WrongField, problems_by_field, value_of

router = APIRouter(prefix="/settings")
TEMPLATE = "settings/agents.html"
VIEWS: Final = (
    *(("", "Agents"), ("/keys", "Keys"), ("/tenants", "Tenants and quotas")),
    *(("/services", "Services"), ("/audit", "Audit")),
)
SCHEMA: Final = "SettingsInForce"
STEPS_SLIDER_MAX: Final = 10
CENTS_SLIDER_MAX: Final = 100
NOT_SET: Final = ("defaults", "updated_at")
SPECIAL: Final = ("style", "max_steps", "max_cost_usd", "tools", "default_model")
SWITCHES: Final = ("web_search", "memory", "images", "show_reasoning")
STYLES: Final = (
    ("tool_first", "Tool first", "Gathers by tools before it answers; more thorough, slower."),
    ("balanced", "Balanced", "Uses tools where they are likely to help."),
    ("direct", "Direct", "Answers from what it knows; faster, may miss what is new."),
)
TOOL_CHARS: Final = 50
"""Of what a tool says about itself."""


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """What the form shows."""

    settings: dict[str, Any]
    tag: str
    fields: dict[str, SchemaField]
    tools: list[dict[str, Any]]
    on: frozenset[str]
    """Tools that agents may use now."""
    models: list[ModelGroup]
    problem: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)
    theirs: Sequence[Difference] = ()
    views: Any = VIEWS
    view: str = ""

    def is_default(self, name: str) -> bool:
        """Return whether nobody has changed a setting."""
        return name in self.settings["defaults"]

    @property
    def switches(self) -> list[SchemaField]:
        return [self.fields[name] for name in SWITCHES if name in self.fields]

    @property
    def more(self) -> list[SchemaField]:
        """Return the fields that have no place of their own, also those that the API gained."""
        return [one for name, one in self.fields.items() if name not in (*SPECIAL, *SWITCHES)]

    @property
    def cents(self) -> Decimal:
        return Decimal(self.settings["max_cost_usd"]) * 100

    @property
    def takes_all(self) -> bool:
        return "*" in self.settings["tools"]

    @property
    def patterns(self) -> list[str]:
        """Return the patterns, and names of tools that are not there now."""
        there = {"*", *(tool["name"] for tool in self.tools)}
        return [one for one in self.settings["tools"] if one not in there]


async def read(request: Request, client: Client) -> SettingsPage:
    """Ask the API for the settings in force, and for what can be chosen."""
    schemas, found, tools, models = await asyncio.gather(
        request.app.state.schemas.read(client),
        client.tagged("/v1/settings"),
        client.whole("/v1/tools", "tools"),
        client.whole("/v1/models", "models"),
    )
    usable = await _usable(client, found.body["tools"])
    return SettingsPage(
        settings=found.body,
        tag=found.tag or "",
        fields=fields_of(schemas),
        tools=tools["tools"],
        on=usable,
        models=model_groups(models),
    )


def fields_of(schemas: ApiSchemas) -> dict[str, SchemaField]:
    """Return the settings as the API describes them."""
    return {one.name: one for one in schemas.fields(SCHEMA, without=NOT_SET)}


async def _usable(client: Client, patterns: Sequence[str]) -> frozenset[str]:
    """Return the tools that patterns stand for, as the API knows it."""
    checked = await client.post("/v1/agents/draft/check", {"tools": [*patterns]})
    return frozenset((*checked["tools_loaded"], *checked["tools_deferred"]))


def wanted(
    get: Callable[[str], str | None], tools: Iterable[str], fields: Mapping[str, SchemaField]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings that a form says, and what is wrong with single ones. `tools`: the names that are on."""
    said: dict[str, Any] = {"tools": _patterns(get, tools), "default_model": get("default_model") or None}
    problems: dict[str, str] = {}
    for name, one in fields.items():
        text = _text(name, get)
        if name in ("tools", "default_model") or (text is None and one.kind != "switch"):
            continue
        try:
            said[name] = value_of(one, text or "")
        except WrongField as error:
            problems[name] = error.message
    return said, problems


def _text(name: str, get: Callable[[str], str | None]) -> str | None:
    """Return what a form says of one setting; a slider gives way to a number beside it."""
    if name == "max_steps":
        return get("max_steps_more") or get("max_steps")
    if name == "max_cost_usd":
        cents = get("cost_cents") or ""
        return get("max_cost_usd_more") or (str(Decimal(cents) / 100) if cents.isdigit() else cents or None)
    return get(name)


def _patterns(get: Callable[[str], str | None], tools: Iterable[str]) -> list[str]:
    if get("tools_all") == "all":
        return ["*"]
    patterns = [line.strip() for line in (get("tool_patterns") or "").splitlines() if line.strip()]
    named = [name for name in tools if not any(fnmatchcase(name, pattern) for pattern in patterns)]
    return [*patterns, *named]


def changes(now: Mapping[str, Any], said: Mapping[str, Any], back: Iterable[str]) -> dict[str, Any]:
    """Return what a patch has to say: what differs, and null for what goes back to its default."""
    changed = {name: value for name, value in said.items() if not _is_same(now.get(name), value)}
    return changed | {name: None for name in back if name not in now["defaults"]}


def _is_same(now: Any, value: Any) -> bool:
    if now == value or (isinstance(now, list) and isinstance(value, list) and sorted(now) == sorted(value)):
        return True
    try:
        return isinstance(now, str) and isinstance(value, str) and Decimal(now) == Decimal(value)
    except InvalidOperation:
        return False


@router.get("")
async def settings(request: Request, visitor: VisitorDependency) -> HTMLResponse:
    """Show the settings."""
    frame = Frame.of(request, visitor, title="Settings", section="/settings")
    return await show(request, TEMPLATE, frame, page=await read(request, visitor.client), styles=STYLES)


@router.post("")
async def change(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Change the settings where they are as the form read them."""
    page = await read(request, visitor.client)

    def get(name: str) -> str | None:
        value = form.get(name)
        return value.strip() if isinstance(value, str) else None

    names = [one for one in form.getlist("tool") if isinstance(one, str)]
    back = [one for one in form.getlist("default") if isinstance(one, str) and one in page.fields]
    said, problems = wanted(get, names, page.fields)
    change = changes(page.settings, said, back)
    if not problems:
        try:
            await visitor.client.patch("/v1/settings", change, headers={"If-Match": field_of(form, "tag")})
            return go("/settings", done="saved")
        except ApiError as error:
            if error.status is None or error.status >= 500:
                raise
            page = _refused(page, said, error)
    shown = page.settings | {name: value for name, value in said.items() if value is not None}
    page = replace(page, settings=shown, problems=problems or problems_by_field(page.problem))
    frame = Frame.of(request, visitor, title="Settings", section="/settings")
    return await show(request, TEMPLATE, frame, status=422, page=page, styles=STYLES)


def _refused(page: SettingsPage, said: Mapping[str, Any], error: ApiError) -> SettingsPage:
    if error.status != 412:
        return replace(page, problem=str(error))
    now = {name: value for name, value in page.settings.items() if name in said}
    problem = "The settings were changed after this form was opened: save again to put yours over them."
    return replace(page, problem=problem, theirs=differences(now, dict(said)))
