"""A form that submits a job, with files, after showing its route and what it is expected to cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.form_values import key_of, new_key
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.job_files import (
    FILES_MAX,
    FormWithFiles,
    GivenFile,
    files_in,
    input_of,
    read_back,
    upload_all,
)
from wayline.console.pages.refusal import reason_of

router = APIRouter()
sending = APIRouter()
"""Apart, because a form with files may be larger than any other."""
TEMPLATE = "submit.html"
EXAMPLE: Final = "What can you do for me?"
TYPED: Final = ("agent", "input", "session_id", "model", "budget_usd", "tags")


@dataclass(frozen=True, slots=True)
class Draft:
    """A job that is being written."""

    agent: str = ""
    input: str = EXAMPLE
    session_id: str = ""
    model: str = ""
    budget_usd: str = ""
    tags: str = ""
    files: Sequence[GivenFile] = ()

    def body(self, *, dry_run: bool = False) -> dict[str, Any]:
        """Return what is submitted; what was left empty is the agent's own."""
        options: dict[str, Any] = {"dry_run": True} if dry_run else {}
        options |= {"model": self.model} if self.model else {}
        options |= {"budget_usd": self.budget_usd} if self.budget_usd else {}
        options |= {"tags": self.tags.split()} if self.tags else {}
        body: dict[str, Any] = {"agent": self.agent, "input": input_of(self.input, self.files), "options": options}
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
    return await _show(request, Frame.of(request, visitor, title="New job", section="/jobs"), Submit(draft, agents))


@sending.post("/jobs/new")
async def submit_job(request: Request, visitor: VisitorDependency, form: FormWithFiles) -> Response:
    """Submit a job and lead to it, or show what it would take; its files are uploaded once, also for that."""
    typed, files = {name: field_of(form, name) for name in TYPED}, read_back(form)
    planned, problem = None, ""
    try:
        new = files_in(form)
        if len(files) + len(new) > FILES_MAX:
            raise ApiError(f"A job takes at most {FILES_MAX} files", code="too_many_files", status=422)
        given, refused = await upload_all(visitor.client, new)
        files += given
        if refused:
            raise _of_all(refused)
        draft = Draft(**typed, files=files)
        if "preview" not in form:
            accepted = await visitor.client.submit(draft.body(), key=key_of(form))
            return go(f"/jobs/{accepted['job_id']}")
        planned = await visitor.client.post("/v1/jobs", draft.body(dry_run=True))
    except ApiError as error:
        problem = reason_of(error)
    frame = Frame.of(request, visitor, title="New job", section="/jobs")
    page = Submit(Draft(**typed, files=files), await read_agents(visitor.client), planned, problem)
    return await _show(request, frame, page)


def _of_all(refused: Sequence[ApiError]) -> ApiError:
    """Return one error for all files that no job can be given; the others stay in the form."""
    reasons = " · ".join(dict.fromkeys(map(str, refused)))
    # Where another was not answered, the form with what is in it is worth more than a page that says so.
    first = next((one for one in refused if one.status is not None and one.status < 500), refused[0])
    return ApiError(f"The job was not sent. {reasons}", code=first.code, status=first.status)


async def _show(request: Request, frame: Frame, page: Submit) -> HTMLResponse:
    most = request.app.state.document_max_bytes
    return await show(request, TEMPLATE, frame, status=422 if page.problem else 200, page=page, document_max_bytes=most)
