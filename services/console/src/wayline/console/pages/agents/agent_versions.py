"""Versions of an agent: what each changed, how its jobs went and what they cost, and the way back to one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency, field
from wayline.console.pages import confirm
from wayline.console.pages.agents.agent_form import saved_config
from wayline.console.pages.agents.agent_list import DAYS, costs_by
from wayline.console.pages.agents.agent_page import VIEWS, AgentName, frame_of
from wayline.console.pages.agents.differences import Difference, differences
from wayline.console.pages.frame import go, show
from wayline.console.pages.refusal import reason_of

router = APIRouter(prefix="/agents/{name}")
TEMPLATE = "agents/versions.html"
VERSIONS_SHOWN = 50
JOBS_READ = 200
"""The newest jobs, from which the figures of versions are made."""
Number = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


@dataclass(slots=True)
class VersionFigures:
    """How the jobs of a version went."""

    jobs: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class VersionsPage:
    """What the page shows."""

    name: str
    version: int | None
    """The newest; None: the agent is deleted."""
    versions: list[dict[str, Any]]
    next_cursor: str | None
    figures: dict[int, VersionFigures]
    costs: dict[str, dict[str, Any]] | None
    """What each version has cost of late, by its number; None: the key may not know."""
    left: int | None
    right: int | None
    found: list[Difference]
    problem: str = ""
    views: Any = VIEWS
    view: str = "/versions"
    jobs_read: int = JOBS_READ
    days: int = DAYS


def figures_of(jobs: Iterable[dict[str, Any]]) -> dict[int, VersionFigures]:
    """Return how the jobs of each version went, of a list of jobs."""
    found: dict[int, VersionFigures] = {}
    for job in jobs:
        if job["agent_version"] is None:
            continue
        figures = found.setdefault(job["agent_version"], VersionFigures())
        figures.jobs += 1
        figures.failed += job["status"] == "failed"
    return found


async def read(
    client: Client, name: str, *, now: datetime, left: int | None, right: int | None, cursor: str | None = None
) -> VersionsPage:
    """Ask the API for the versions of an agent; one that is deleted has them still."""
    since = (now - timedelta(days=DAYS)).isoformat()
    page, jobs, costs = await asyncio.gather(
        client.get(f"/v1/agents/{name}/versions", limit=VERSIONS_SHOWN, cursor=cursor),
        client.get("/v1/jobs", agent=name, limit=JOBS_READ),
        costs_by(client, "version", since=since, agent=name),
    )
    versions = page["versions"]
    newest = versions[0] if versions else None
    current = newest["version"] if newest and newest["retired_at"] is None and cursor is None else None
    if cursor is not None:
        current = await _current(client, name)
    if right is None and len(versions) > 1:
        left, right = versions[1]["version"], versions[0]["version"]
    found: list[Difference] = []
    if left is not None and right is not None:
        paths = [f"/v1/agents/{name}/versions/{number}" for number in (left, right)]
        before, after = await asyncio.gather(*map(client.get, paths))
        found = differences(saved_config(before), saved_config(after))
    figures = figures_of(jobs["jobs"])
    return VersionsPage(name, current, versions, page["next_cursor"], figures, costs, left, right, found)


async def _current(client: Client, name: str) -> int | None:
    try:
        return (await client.get(f"/v1/agents/{name}"))["version"]
    except ApiError as error:
        if error.status != 404:
            raise
        return None


@router.get("/versions")
async def versions(
    *,
    request: Request,
    visitor: VisitorDependency,
    name: AgentName,
    left: Number = None,
    right: Number = None,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> HTMLResponse:
    """Show the versions of an agent, and what differs between two of them."""
    frame = frame_of(request, visitor, name)
    page = await read(visitor.client, name, now=frame.now, left=left, right=right, cursor=cursor)
    return await show(request, TEMPLATE, frame, page=page)


async def _refused(request: Request, visitor: Visitor, name: str, error: ApiError) -> HTMLResponse:
    """Show the versions with why nothing was changed."""
    problem, frame = reason_of(error), frame_of(request, visitor, name)
    page = replace(await read(visitor.client, name, now=frame.now, left=None, right=None), problem=problem)
    return await show(request, TEMPLATE, frame, status=422, page=page)


@router.post("/label")
async def label(request: Request, visitor: VisitorDependency, form: PostedForm, name: AgentName) -> Response:
    """Give a version a label, or take one from the agent."""
    path = f"/v1/agents/{name}/labels/{quote(field(form, 'label') or '-', safe='')}"
    number = field(form, "number")
    try:
        if "remove" in form:
            await visitor.client.delete(path)
        else:
            await visitor.client.put(path, {"version": int(number) if number.isdigit() else 0})
    except ApiError as error:
        return await _refused(request, visitor, name, error)
    return go(f"/agents/{name}/versions", done="saved")


@router.post("/return")
async def return_to(request: Request, visitor: VisitorDependency, form: PostedForm, name: AgentName) -> Response:
    """Save an old version as the newest one; where another was saved meanwhile, nothing is."""
    client, number = visitor.client, field(form, "number")
    try:
        old = await client.get(f"/v1/agents/{name}/versions/{number if number.isdigit() else 0}")
        now = await client.tagged(f"/v1/agents/{name}")
        if str(now.body["version"]) != field(form, "version"):
            raise ApiError(f"version {now.body['version']} was saved meanwhile: look at it first", status=412)
        await client.put(f"/v1/agents/{name}", saved_config(old), headers={"If-Match": now.tag or ""})
    except ApiError as error:
        return await _refused(request, visitor, name, error)
    return go(f"/agents/{name}", done="agent-saved")


@router.post("/delete")
async def delete(request: Request, visitor: VisitorDependency, form: PostedForm, name: AgentName) -> Response:
    """Ask, and delete an agent where it is as it was seen."""
    if not confirm.is_confirmed(form):
        question = confirm.Confirmation.of(
            "delete",
            f"the agent {name}",
            at=f"/agents/{name}",
            sentences=("Jobs that began with it go on; new ones are refused, also those of schedules.",),
            fields=confirm.fields_of(form),
            scope="admin",
        )
        return await confirm.ask(request, visitor, question, section="/agents")
    await visitor.client.delete(f"/v1/agents/{name}", headers={"If-Match": field(form, "tag") or "*"})
    return go(f"/agents/{name}/versions", done="agent-deleted")


@router.post("/restore")
async def restore(visitor: VisitorDependency, form: PostedForm, name: AgentName) -> Response:
    """Bring a deleted agent back."""
    await visitor.client.post(f"/v1/agents/{name}/restore")
    return go(f"/agents/{name}", done="agent-restored")
