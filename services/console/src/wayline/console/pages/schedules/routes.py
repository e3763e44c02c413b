"""Schedules: when each fires, what came of it and what that cost; made, changed, paused, run now and deleted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import confirm
from wayline.console.pages.confirm import Confirmation
from wayline.console.pages.form_values import key_of, new_key
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.refusal import reason_of
from wayline.console.pages.schedules.cron_words import WrongTime, by_clock, in_words, next_moments, zone_named
from wayline.console.pages.schedules.schedule_form import KINDS, MISSED, OVERLAP, ScheduleForm, of_schedule, written
from wayline.console.pages.submit import read_agents

router = APIRouter(prefix="/schedules")
TEMPLATE = "schedules/list.html"
ONE_TEMPLATE = "schedules/one_schedule.html"
EDIT_TEMPLATE = "schedules/edit.html"
PATH: Final = "/v1/schedules"
OPTIONS_SCHEMA: Final = "JobOptions"
"""Of the API's description: the options of a job."""
PAGE_SIZE = 50
FIRINGS_SHOWN = 50
DAYS: Final = 30
SCOPE: Final = "admin"

ScheduleName: TypeAlias = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


@dataclass(frozen=True, slots=True)
class Schedules:
    """What the list shows."""

    schedules: list[dict[str, Any]]
    next_cursor: str | None = None
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the jobs of each cost lately, by its name."""


@dataclass(frozen=True, slots=True)
class OneSchedule:
    """What the page of one schedule shows."""

    schedule: dict[str, Any]
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Its newest jobs by their ids: what they cost is not in a firing."""
    key: str = ""
    """Of the next run by hand: a form that is sent twice runs once."""
    problem: str = ""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Of the options of a job."""

    @property
    def at(self) -> str:
        return f"/schedules/named/{self.schedule['name']}"

    @property
    def options(self) -> list[tuple[str, Any]]:
        """Return the options of its job that differ from their defaults."""
        options = self.schedule["job"].get("options") or {}
        return sorted((name, value) for name, value in options.items() if value and value != self.defaults.get(name))


@dataclass(frozen=True, slots=True)
class EditSchedule:
    """What the form shows."""

    form: ScheduleForm
    is_new: bool = True
    tag: str = ""
    """Of the schedule as the form began with it: another one is not overwritten."""
    agents: list[str] = field(default_factory=list)
    words: str = ""
    """When it would fire, in words, once that was asked."""
    moments: list[datetime] = field(default_factory=list)
    problem: str = ""

    @property
    def action(self) -> str:
        return "/schedules/new" if self.is_new else f"/schedules/named/{self.form.name}/edit"


def _frame(request: Request, visitor: Visitor, title: str) -> Frame:
    return Frame.of(request, visitor, title=title, section="/schedules")


@router.get("")
async def schedules(request: Request, visitor: VisitorDependency, cursor: str | None = None) -> HTMLResponse:
    """Show the schedules."""
    frame = _frame(request, visitor, "Schedules")
    page, costs = await asyncio.gather(
        visitor.client.get(PATH, limit=PAGE_SIZE, cursor=cursor), _costs(visitor.client, frame.now)
    )
    found = Schedules(page["schedules"], page["next_cursor"], costs)
    values = {"in_words": in_words, "by_clock": by_clock, "scope": SCOPE, "days": DAYS}
    return await show(request, TEMPLATE, frame, page=found, **values)


async def _costs(client: Client, now: datetime) -> dict[str, dict[str, Any]]:
    """Return what the jobs of schedules cost; nothing where the key may not know it, or tracing is away."""
    try:
        table = await client.get("/v1/costs", group_by="schedule", since=(now - timedelta(days=DAYS)).isoformat())
    except ApiError:
        return {}
    return {row["group"].get("schedule", ""): row for row in table["rows"]}


async def read(request: Request, client: Client, name: str, *, problem: str = "") -> OneSchedule:
    """Ask the API for a schedule, its firings and their jobs."""
    schedule, jobs, schemas = await asyncio.gather(
        client.get(f"{PATH}/{name}", limit=FIRINGS_SHOWN),
        client.get("/v1/jobs", schedule=name, limit=FIRINGS_SHOWN),
        request.app.state.schemas.read(client),
    )
    defaults = {option.name: option.default for option in schemas.fields(OPTIONS_SCHEMA)}
    return OneSchedule(schedule, {job["job_id"]: job for job in jobs["jobs"]}, new_key(), problem, defaults)


async def _show(request: Request, visitor: Visitor, page: OneSchedule) -> HTMLResponse:
    frame = _frame(request, visitor, page.schedule["name"])
    values = {"in_words": in_words, "by_clock": by_clock, "scope": SCOPE}
    return await show(request, ONE_TEMPLATE, frame, status=422 if page.problem else 200, page=page, **values)


@router.get("/named/{name}")
async def one_schedule(request: Request, visitor: VisitorDependency, name: ScheduleName) -> HTMLResponse:
    """Show a schedule."""
    return await _show(request, visitor, await read(request, visitor.client, name))


@router.post("/named/{name}/run")
async def run(request: Request, visitor: VisitorDependency, form: PostedForm, name: ScheduleName) -> Response:
    """Submit a schedule's job now, and lead to the job."""
    headers = {"Idempotency-Key": key_of(form) or new_key()}
    try:
        accepted = await visitor.client.post(f"{PATH}/{name}/run", headers=headers)
    except ApiError as error:
        return await _show(request, visitor, await read(request, visitor.client, name, problem=reason_of(error)))
    return go(f"/jobs/{accepted['job_id']}")


async def _switch(request: Request, visitor: Visitor, name: str, verb: str) -> Response:
    try:
        await visitor.client.post(f"{PATH}/{name}/{verb}")
    except ApiError as error:
        return await _show(request, visitor, await read(request, visitor.client, name, problem=reason_of(error)))
    return go(f"/schedules/named/{name}", done=f"{verb}d")


@router.post("/named/{name}/enable")
async def enable(request: Request, visitor: VisitorDependency, _: PostedForm, name: ScheduleName) -> Response:
    """Have a schedule plan from now on."""
    return await _switch(request, visitor, name, "enable")


@router.post("/named/{name}/disable")
async def disable(request: Request, visitor: VisitorDependency, _: PostedForm, name: ScheduleName) -> Response:
    """Pause a schedule: it is kept and fires no more."""
    return await _switch(request, visitor, name, "disable")


@router.post("/named/{name}/delete")
async def delete(request: Request, visitor: VisitorDependency, form: PostedForm, name: ScheduleName) -> Response:
    """Delete a schedule, after asking once more."""
    at = f"/schedules/named/{name}"
    if not confirm.is_confirmed(form):
        lost = ("It fires no more. The jobs that it has submitted go on.",)
        question = Confirmation.of("delete", f"the schedule {name}", at=at, sentences=lost, scope=SCOPE)
        return await confirm.ask(request, visitor, question, section="/schedules")
    try:
        await visitor.client.delete(f"{PATH}/{name}")
    except ApiError as error:
        return await _show(request, visitor, await read(request, visitor.client, name, problem=reason_of(error)))
    return go("/schedules", done="deleted")


async def _show_form(request: Request, visitor: Visitor, page: EditSchedule) -> HTMLResponse:
    title = "New schedule" if page.is_new else f"Change {page.form.name}"
    agents = await read_agents(visitor.client)
    values = {"kinds": KINDS, "missed": MISSED, "overlap": OVERLAP, "scope": SCOPE}
    frame, status = _frame(request, visitor, title), 422 if page.problem else 200
    return await show(request, EDIT_TEMPLATE, frame, status=status, page=replace(page, agents=agents), **values)


@router.get("/new")
async def new_schedule(request: Request, visitor: VisitorDependency, agent: str = "") -> HTMLResponse:
    """Show the empty form."""
    return await _show_form(request, visitor, EditSchedule(ScheduleForm(agent=agent)))


@router.post("/new")
async def create(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Create a schedule, or show when it would fire."""
    return await _act(request, visitor, form, EditSchedule(written(form)), None)


@router.get("/named/{name}/edit")
async def edit(request: Request, visitor: VisitorDependency, name: ScheduleName) -> HTMLResponse:
    """Show a schedule as it is saved."""
    found = await visitor.client.tagged(f"{PATH}/{name}", limit=0)
    page = EditSchedule(of_schedule(found.body), is_new=False, tag=found.tag or "")
    return await _show_form(request, visitor, page)


@router.post("/named/{name}/edit")
async def change(request: Request, visitor: VisitorDependency, form: PostedForm, name: ScheduleName) -> Response:
    """Change a schedule, or show when it would fire."""
    saved = await visitor.client.get(f"{PATH}/{name}", limit=0)
    page = EditSchedule(replace(written(form), name=name), is_new=False, tag=field_of(form, "tag"))
    return await _act(request, visitor, form, page, saved)


async def _act(
    request: Request, visitor: Visitor, form: FormData, page: EditSchedule, saved: dict[str, Any] | None
) -> Response:
    """Do what one of the form's buttons says, and show the form again unless the schedule is saved."""
    filled = page.form
    try:
        config = filled.config(saved)
        if "when" in form:
            return await _show_form(request, visitor, _with_moments(page, config, now=datetime.now().astimezone()))
        if not filled.name:
            raise WrongTime("give it a name: small letters, digits, _ and -")
        if page.is_new:
            await visitor.client.post(f"{PATH}/{quote(filled.name, safe='')}", config)
        else:
            headers = {"If-Match": page.tag} if page.tag else None
            await visitor.client.put(f"{PATH}/{filled.name}", config, headers=headers)
    except WrongTime as error:
        return await _show_form(request, visitor, replace(page, problem=str(error)))
    except ApiError as error:
        return await _show_form(request, visitor, replace(page, problem=reason_of(error)))
    return go(f"/schedules/named/{filled.name}", done="saved")


def _with_moments(page: EditSchedule, config: dict[str, Any], *, now: datetime) -> EditSchedule:
    """Return the form with when it would fire. Raises WrongTime."""
    zone = zone_named(config["timezone"])
    if "at" in config:
        at = datetime.fromisoformat(config["at"]).astimezone(zone)
        return replace(page, words="Once" if at > now else "Never: that is over", moments=[at] if at > now else [])
    return replace(page, words=in_words(config["cron"]), moments=next_moments(config["cron"], zone, now))
