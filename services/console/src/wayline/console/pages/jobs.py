"""Jobs: found by words and conditions, and a form that submits one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from pydantic import StringConstraints

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import job_search
from wayline.console.pages.file_download import file_of
from wayline.console.pages.form_values import key_of, new_key
from wayline.console.pages.frame import Frame, go, own_address, show
from wayline.console.pages.job import JOB_ID
from wayline.console.pages.job_actions import ACTIONS
from wayline.console.pages.job_search import JobSearch
from wayline.console.pages.live_events import heartbeats, sse, stream_of
from wayline.console.pages.refusal import reason_of
from wayline.console.render.formats import utc_now

router = APIRouter()
TEMPLATE = "jobs.html"
ROWS_TEMPLATE = "job_rows.html"
SUBMIT_TEMPLATE = "submit.html"
PAGE_SIZE = 50
SEARCH_MAX_CHARS = 500
SORTS: Final = (("newest", "newest"), ("dearest", "dearest"), ("slowest", "slowest"))
COLUMNS: Final = (
    *("agent", "input", "model", "user", "session", "tags", "steps", "tokens", "cost", "predicted", "took", "age"),
)
SHOWN: Final = ("agent", "input", "model", "steps", "tokens", "cost", "age")
"""Columns that are shown where nobody chose."""
COLUMNS_COOKIE: Final = "wayline-job-columns"
KEPT_S: Final = 365 * 86_400
ROWS_MAX: Final = 50
"""Rows that a list asks anew at once."""
NEWS: Final = frozenset({"job.submitted", "job.forked"})
"""Events of jobs that a list does not have yet."""
ROW_TYPES: Final = "job.*,model.completed,approval.*"
"""Events after which a row of the list is another."""
EXAMPLE: Final = "What can you do for me?"

Id: TypeAlias = Annotated[str, StringConstraints(pattern=JOB_ID)]
Search = Annotated[str, Query(max_length=SEARCH_MAX_CHARS)]


@dataclass(frozen=True, slots=True)
class Jobs:
    """What the list shows."""

    search: JobSearch
    jobs: list[dict[str, Any]]
    facets: dict[str, Any]
    next_address: str | None
    problem: str = ""
    columns: tuple[str, ...] = SHOWN

    @property
    def export(self) -> str:
        """Return the address of all that match, as a file."""
        return job_search.address(self.search.text).replace("/jobs", "/jobs/export", 1)

    def narrowed(self, condition: str) -> str:
        """Return the address of the list with one more condition."""
        return job_search.address(f"{self.search.text} {condition}".strip())


async def read(client: Client, search: JobSearch, cursor: str | None, *, columns: tuple[str, ...] = SHOWN) -> Jobs:
    """Ask the API for one page of jobs; a refused question is shown beside the box that asked it."""
    asked: dict[str, Any] = {**search.parameters, "limit": PAGE_SIZE, "cursor": cursor, "facets": True}
    try:
        page = await client.get("/v1/jobs", **asked)
    except ApiError as error:
        if error.status not in (400, 422):
            raise
        return Jobs(search, [], {}, None, str(error), columns)
    cursor = page["next_cursor"]
    following = job_search.address(search.text, cursor=cursor) if cursor else None
    return Jobs(search, page["jobs"], page.get("facets") or {}, following, columns=columns)


@router.get("/jobs")
async def jobs(
    request: Request, visitor: VisitorDependency, s: Search = "", cursor: Annotated[str | None, Query()] = None
) -> HTMLResponse:
    """Show the jobs that a search finds."""
    frame = Frame.of(request, visitor, title="Jobs", section="/jobs")
    search = job_search.parse(s, now=frame.now, zone=request.app.state.templates.zone)
    found = await read(visitor.client, search, cursor, columns=_columns_of(request))
    return await show(request, TEMPLATE, frame, page=found, sorts=SORTS, columns=COLUMNS, actions=ACTIONS)


def _columns_of(request: Request) -> tuple[str, ...]:
    chosen = request.cookies.get(COLUMNS_COOKIE, "").split(".")
    return tuple(name for name in COLUMNS if name in chosen) or SHOWN


@router.post("/jobs/columns")
async def choose_columns(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Keep in the browser which columns the list shows."""
    chosen = ".".join(name for name in COLUMNS if name in form.getlist("column"))
    answer = go(own_address(field_of(form, "then") or "/jobs"))
    secure = request.app.state.is_tls
    answer.set_cookie(COLUMNS_COOKIE, chosen, max_age=KEPT_S, path="/jobs", secure=secure, samesite="lax")
    return answer


@router.get("/jobs/export")
async def export(
    request: Request,
    visitor: VisitorDependency,
    s: Search = "",
    format: Annotated[str, Query(pattern="^(csv|ndjson)$")] = "csv",
) -> StreamingResponse:
    """Answer with all jobs that a search finds as a file."""
    search = job_search.parse(s, now=utc_now(), zone=request.app.state.templates.zone)
    parameters = {name: value for name, value in search.parameters.items() if name != "sort"}
    pieces = visitor.client.download("/v1/jobs/export", format=format, **parameters)
    media = "text/csv; charset=utf-8" if format == "csv" else "application/x-ndjson"
    return await file_of(pieces, disposition=f'attachment; filename="jobs.{format}"', media_type=media)


@router.get("/jobs/rows")
async def rows(
    request: Request, visitor: VisitorDependency, id: Annotated[list[Id], Query(max_length=ROWS_MAX)]
) -> HTMLResponse:
    """Show rows of the list as they are now; a job that is gone has none."""
    frame = Frame.of(request, visitor, title="Jobs", section="/jobs")
    found = await asyncio.gather(*(visitor.client.job(job_id) for job_id in id), return_exceptions=True)
    jobs = [job for job in found if isinstance(job, dict)]
    return await show(request, ROWS_TEMPLATE, frame, jobs=jobs, columns=_columns_of(request))


@router.get("/jobs/news")
async def news(visitor: VisitorDependency) -> Response:
    """Stream which jobs are new and which have changed, without end."""
    return stream_of(heartbeats(news_of(visitor.client)))


async def news_of(client: Client) -> AsyncIterator[bytes]:
    """Yield one event for each of any job after which its row is another."""
    async with aclosing(client.tenant_events(types=ROW_TYPES)) as events:
        async for event in events:
            if event["type"] == "gap":
                yield sse("gap", {})
            elif "job_id" in event:
                yield sse("new" if event["type"] in NEWS else "changed", {"job_id": event["job_id"]})


@dataclass(frozen=True, slots=True)
class Draft:
    """A job that is being written."""

    agent: str = ""
    input: str = EXAMPLE
    session_id: str = ""
    model: str = ""
    budget_usd: str = ""
    tags: str = ""

    def body(self, *, dry_run: bool = False) -> dict[str, Any]:
        """Return what is submitted; what was left empty is the agent's own."""
        options: dict[str, Any] = {"dry_run": True} if dry_run else {}
        options |= {"model": self.model} if self.model else {}
        options |= {"budget_usd": self.budget_usd} if self.budget_usd else {}
        options |= {"tags": self.tags.split()} if self.tags else {}
        body: dict[str, Any] = {"agent": self.agent, "input": self.input, "options": options}
        return body | ({"session_id": self.session_id} if self.session_id else {})


@dataclass(frozen=True, slots=True)
class Submit:
    """What the form shows: the draft, and what it would take once that was asked."""

    draft: Draft
    agents: list[str] = field(default_factory=list)
    planned: dict[str, Any] | None = None
    problem: str = ""
    key: str = field(default_factory=new_key)
    """Of the submission: a form that is sent twice is one job."""


async def read_agents(client: Client) -> list[str]:
    """Return the names of the agents that a job can be given to."""
    return [agent["name"] for agent in (await client.whole("/v1/agents", "agents"))["agents"]]


@router.get("/jobs/new")
async def write_job(request: Request, visitor: VisitorDependency, agent: str = "", input: str = "") -> HTMLResponse:
    """Show the form that submits a job."""
    agents = await read_agents(visitor.client)
    draft = Draft(agent=agent or (agents[0] if agents else ""), input=input or EXAMPLE)
    frame = Frame.of(request, visitor, title="New job", section="/jobs")
    return await show(request, SUBMIT_TEMPLATE, frame, page=Submit(draft, agents))


@router.post("/jobs/new")
async def submit_job(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Submit a job and lead to it, or show what it would take."""
    draft = Draft(**{name: field_of(form, name) for name in Draft.__dataclass_fields__})
    planned, problem = None, ""
    try:
        if "preview" not in form:
            accepted = await visitor.client.submit(draft.body(), key=key_of(form))
            return go(f"/jobs/{accepted['job_id']}")
        planned = await visitor.client.post("/v1/jobs", draft.body(dry_run=True))
    except ApiError as error:
        problem = reason_of(error)
    frame = Frame.of(request, visitor, title="New job", section="/jobs")
    page = Submit(draft, await read_agents(visitor.client), planned, problem)
    return await show(request, SUBMIT_TEMPLATE, frame, status=422 if problem else 200, page=page)
