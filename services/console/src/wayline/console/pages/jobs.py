"""Jobs: found by words and conditions, and a form that submits one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import job_search
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.job_search import JobSearch

router = APIRouter()
TEMPLATE = "jobs.html"
SUBMIT_TEMPLATE = "submit.html"
PAGE_SIZE = 50
SEARCH_MAX_CHARS = 500
SORTS: Final = (("newest", "newest"), ("dearest", "dearest"), ("slowest", "slowest"))
EXAMPLE: Final = "What can you do for me?"

Search = Annotated[str, Query(max_length=SEARCH_MAX_CHARS)]


@dataclass(frozen=True, slots=True)
class Jobs:
    """What the list shows."""

    search: JobSearch
    jobs: list[dict[str, Any]]
    facets: dict[str, Any]
    next_address: str | None
    problem: str = ""

    def narrowed(self, condition: str) -> str:
        """Return the address of the list with one more condition."""
        return job_search.address(f"{self.search.text} {condition}".strip())


async def read(client: Client, search: JobSearch, cursor: str | None) -> Jobs:
    """Ask the API for one page of jobs; a refused question is shown beside the box that asked it."""
    asked: dict[str, Any] = {**search.parameters, "limit": PAGE_SIZE, "cursor": cursor, "facets": True}
    try:
        page = await client.get("/v1/jobs", **asked)
    except ApiError as error:
        if error.status not in (400, 422):
            raise
        return Jobs(search, [], {}, None, str(error))
    cursor = page["next_cursor"]
    following = job_search.address(search.text, cursor=cursor) if cursor else None
    return Jobs(search, page["jobs"], page.get("facets") or {}, following)


@router.get("/jobs")
async def jobs(
    request: Request, visitor: VisitorDependency, s: Search = "", cursor: Annotated[str | None, Query()] = None
) -> HTMLResponse:
    """Show the jobs that a search finds."""
    frame = Frame.of(request, visitor, title="Jobs", section="/jobs")
    found = await read(visitor.client, job_search.parse(s, now=frame.now), cursor)
    return await show(request, TEMPLATE, frame, page=found, sorts=SORTS)


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
            accepted = await visitor.client.submit(draft.body())
            return go(f"/jobs/{accepted['job_id']}")
        planned = await visitor.client.post("/v1/jobs", draft.body(dry_run=True))
    except ApiError as error:
        if error.status is None or error.status >= 500:
            raise
        problem = str(error)
    frame = Frame.of(request, visitor, title="New job", section="/jobs")
    page = Submit(draft, await read_agents(visitor.client), planned, problem)
    return await show(request, SUBMIT_TEMPLATE, frame, status=422 if problem else 200, page=page)
