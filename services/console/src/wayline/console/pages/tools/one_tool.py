"""One tool: what it is, who may use it, how its calls went; and one call of it, by a person."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.refusal import reason_of
from wayline.console.pages.tools.argument_form import (
    PREFIX,
    Argument,
    WrongArguments,
    arguments_of,
    read_fields,
    read_raw,
)
from wayline.console.pages.tools.catalogue import DAYS, EFFECTS

router = APIRouter(prefix="/tools/named/{name}")
TEMPLATE = "tools/one_tool.html"
WAIT_S: Final = 30
"""How long a call is waited for; one that takes longer is asked for again under its key."""
AGENT_TOOLS: Final = frozenset({"run_agent", "wait_for_job"})
"""Tools that only a job can call."""

ToolName: TypeAlias = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
Days: TypeAlias = Annotated[int, Query(ge=1, le=400)]


@dataclass(frozen=True, slots=True)
class Trial:
    """A call that a person writes, and what became of it."""

    key: str
    """The same for every time that its form is sent: sent twice it is one call."""
    values: dict[str, str] = field(default_factory=dict)
    raw: str = ""
    as_json: bool = False
    result: dict[str, Any] | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class OneTool:
    """What the page shows."""

    view: dict[str, Any]
    trial: Trial
    arguments: tuple[Argument, ...] | None

    @property
    def tool(self) -> dict[str, Any]:
        return self.view["definition"]

    @property
    def acts(self) -> bool:
        return self.tool["effect"] != "read"

    @property
    def failed(self) -> int:
        figures = self.view["figures"]
        return sum(figures["failed"].values()) if figures else 0

    def lacking(self, scopes: Collection[str]) -> list[str]:
        """Return the scopes that a key lacks to call it."""
        return [scope for scope in ("tools", *(("write",) if self.acts else ())) if scope not in scopes]

    @property
    def not_here(self) -> str:
        """Return why it cannot be called from a page; empty: it can."""
        tool = self.tool
        if tool["name"] in AGENT_TOOLS:
            return "Only a job can call it."
        if tool["ask"] == "always" or (tool["ask"] == "writes" and self.acts):
            return "A person must approve each call of it, which only a job can wait for: have an agent call it."
        return ""


async def read(client: Client, name: str, *, days: int, trial: Trial | None = None) -> OneTool:
    """Ask the API for a tool and how its calls went."""
    view = await client.get(f"/v1/tools/{quote(name, safe='')}", days=days)
    return OneTool(view, trial or Trial(token_hex(16)), arguments_of(view["definition"]["input_schema"]))


def written(form: FormData) -> Trial:
    """Return a call as a form has it."""
    values = {name: value for name, value in form.multi_items() if name.startswith(PREFIX) and isinstance(value, str)}
    return Trial(
        field_of(form, "key")[:64] or token_hex(16),
        values,
        field_of(form, "raw"),
        field_of(form, "how") == "raw",
    )


def arguments_to_send(trial: Trial, arguments: tuple[Argument, ...] | None) -> dict[str, Any]:
    """Return the arguments of a call as they were written. Raises WrongArguments."""
    return read_raw(trial.raw) if trial.as_json or arguments is None else read_fields(arguments, trial.values)


@router.get("")
async def one_tool(request: Request, visitor: VisitorDependency, name: ToolName, days: Days = DAYS) -> HTMLResponse:
    """Show a tool."""
    return await _show(request, visitor, await read(visitor.client, name, days=days))


async def _show(request: Request, visitor: Visitor, page: OneTool) -> HTMLResponse:
    frame = Frame.of(request, visitor, title=page.tool["name"], section="/tools")
    status = 422 if page.trial.problem else 200
    return await show(request, TEMPLATE, frame, status=status, page=page, effects=EFFECTS, days=DAYS)


@router.post("/call")
async def call(request: Request, visitor: VisitorDependency, form: PostedForm, name: ToolName) -> Response:
    """Call a tool once, and show what it returned."""
    trial = written(form)
    page = await read(visitor.client, name, days=DAYS)
    result, problem = None, ""
    try:
        if page.acts and "acts" not in form:
            raise WrongArguments("this tool acts: tick that it may, then call it")
        arguments = arguments_to_send(trial, page.arguments)
        result = await visitor.client.post(
            f"/v1/tools/{quote(name, safe='')}/call",
            {"arguments": arguments},
            headers={"Idempotency-Key": f"console-{trial.key}"},
            params={"wait": WAIT_S},
        )
        trial = Trial(trial.key, trial.values, json.dumps(arguments, indent=2, ensure_ascii=False), trial.as_json)
    except WrongArguments as error:
        problem = str(error)
    except ApiError as error:
        problem = reason_of(error)
    # A call that has ended is over: what is sent next is another one.
    runs_on = problem or (result is not None and result["status"] == "in_progress")
    done = Trial(trial.key if runs_on else token_hex(16), trial.values, trial.raw, trial.as_json, result, problem)
    return await _show(request, visitor, OneTool(page.view, done, page.arguments))
