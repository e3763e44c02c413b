"""What an MCP server offers beside tools: its resources, which are read here, and its prompts, which are filled in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.frame import Frame, show
from wayline.console.pages.refusal import told_of
from wayline.console.pages.tools.argument_form import PREFIX
from wayline.console.pages.tools.servers import ServerName, server_path

router = APIRouter(prefix="/tools/servers/{name}/offers")
TEMPLATE = "tools/server_offers.html"


@dataclass(frozen=True, slots=True)
class ServerOffers:
    """What the page shows; what could not be asked is empty and said in `problems`."""

    name: str
    resources: dict[str, Any] = field(default_factory=dict)
    prompts: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    uri: str = ""
    contents: list[dict[str, Any]] | None = None
    """Of the resource at `uri`, once it was read."""
    prompt: str = ""
    values: dict[str, str] = field(default_factory=dict)
    filled: dict[str, Any] | None = None
    """The messages of `prompt`, once it was filled in."""
    problem: str = ""


async def read(client: Client, name: str) -> ServerOffers:
    """Ask the API for the resources and the prompts of a server; one that is away, or has none of a kind, is said."""
    answers = await asyncio.gather(
        client.get(f"{server_path(name)}/resources"),
        client.get(f"{server_path(name)}/prompts"),
        return_exceptions=True,
    )
    problems: list[str] = []
    for answer in answers:
        if isinstance(answer, ApiError):
            told = told_of(answer)
            problems += [told] if told not in problems else []
        elif isinstance(answer, BaseException):
            raise answer
    resources, prompts = ({} if isinstance(answer, BaseException) else answer for answer in answers)
    return ServerOffers(name, resources, prompts, tuple(problems))


async def _show(request: Request, visitor: Visitor, page: ServerOffers) -> HTMLResponse:
    frame = Frame.of(request, visitor, title=f"Resources and prompts of {page.name}", section="/tools")
    return await show(request, TEMPLATE, frame, status=422 if page.problem else 200, page=page, prefix=PREFIX)


@router.get("")
async def offers(
    request: Request,
    visitor: VisitorDependency,
    name: ServerName,
    uri: Annotated[str, Query(max_length=8_000)] = "",
) -> HTMLResponse:
    """Show what a server offers, and what one resource holds."""
    page = await read(visitor.client, name)
    if uri:
        try:
            found = await visitor.client.get(f"{server_path(name)}/resources/read", uri=uri)
            page = replace(page, uri=uri, contents=found["contents"])
        except ApiError as error:
            page = replace(page, uri=uri, problem=told_of(error))
    return await _show(request, visitor, page)


@router.post("")
async def fill(request: Request, visitor: VisitorDependency, form: PostedForm, name: ServerName) -> Response:
    """Have a server fill in one of its prompts."""
    prompt = field_of(form, "prompt")
    values = {
        key.removeprefix(PREFIX): value
        for key, value in form.multi_items()
        if key.startswith(PREFIX) and isinstance(value, str) and value
    }
    page = replace(await read(visitor.client, name), prompt=prompt, values=values)
    try:
        path = f"{server_path(name)}/prompts/{quote(prompt, safe='')}"
        page = replace(page, filled=await visitor.client.post(path, {"arguments": values}))
    except ApiError as error:
        page = replace(page, problem=told_of(error))
    return await _show(request, visitor, page)
