"""Begin a job with what another one did until some event, with something different from there on; both side by side."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.form_values import is_untouched, key_of, new_key
from wayline.console.pages.frame import Frame, go, show
from wayline.console.pages.job import JOB_ID, JobId
from wayline.console.pages.refusal import reason_of
from wayline.console.render.diffs.card import DiffCard, of_versions
from wayline.console.render.json_text import parsed
from wayline.console.render.steps import Step, steps_of

router = APIRouter(prefix="/jobs/{job_id}")
SUBMITTED = 1
"""The event of a log that each job has: a fork after it does all of it again."""
TEMPLATE = "job_fork.html"
BESIDE_TEMPLATE = "job_beside.html"
FIELDS: Final = ("model", "prompt", "input", "budget_usd", "max_steps", "result", "arguments")


class NotAnObject(ValueError):
    """Arguments that were edited are no JSON object."""


@dataclass(frozen=True, slots=True)
class Fork:
    """What the form shows."""

    job: dict[str, Any]
    after: int | None
    """The last event that both share; None: before the step that failed."""
    event: dict[str, Any] | None
    draft: dict[str, str] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)
    problem: str = ""
    key: str = field(default_factory=new_key)
    """Of the fork: a form that is sent twice is one job."""

    @property
    def calls(self) -> dict[str, Any]:
        """Return the arguments of the calls that the event asks for, by call."""
        is_model = self.event is not None and self.event["type"] == "model.completed"
        asked = self.event["message"]["tool_calls"] if self.event and is_model else ()
        return {one["call"]: one["arguments"] for one in asked}

    @property
    def result(self) -> str | None:
        """Return the result that the event holds; None: it is no result."""
        is_result = self.event is not None and self.event["type"] == "tool.completed"
        return self.event["content"] if self.event and is_result else None


@dataclass(frozen=True, slots=True)
class Beside:
    """A fork and its origin."""

    origin: dict[str, Any]
    fork: dict[str, Any]
    origin_steps: list[Step]
    fork_steps: list[Step]
    answers: DiffCard | None = None


def body_of(form: Any, fork: Fork) -> dict[str, Any]:
    """Return the fork that a form asks for; what was left as it was is not sent. Raises NotAnObject."""
    draft = {name: field_of(form, name) for name in FIELDS}
    body: dict[str, Any] = {} if fork.after is None else {"after": fork.after}
    body |= {name: draft[name] for name in ("model", "prompt", "input", "budget_usd") if draft[name]}
    if draft["max_steps"]:
        body["max_steps"] = draft["max_steps"]
    failed = "failed" in form
    if fork.result is not None and (not is_untouched(draft["result"], fork.result) or failed):
        body["tool_result"] = {"content": draft["result"], "failed": failed}
    if fork.calls and draft["arguments"]:
        try:
            arguments = parsed(draft["arguments"])
        except ValueError as error:
            raise NotAnObject(f"the arguments are not JSON: {error}") from None
        if not isinstance(arguments, dict):
            raise NotAnObject("the arguments are not a JSON object of calls")
        changed = {call: given for call, given in arguments.items() if given != fork.calls.get(call)}
        body |= {"arguments": changed} if changed else {}
    return body


async def read(client: Client, job_id: str, after: int | None) -> Fork:
    """Ask the API for what the form needs. A job that did not fail has no step that failed: it begins anew."""
    job, events, models = await asyncio.gather(
        client.job(job_id), client.log(job_id), client.whole("/v1/models", "models")
    )
    if after is None and job["status"] != "failed":
        after = SUBMITTED
    event = next((one for one in events if one["seq"] == after), None)
    names = sorted(f"{one['provider']}/{one['model']}" for one in models["models"])
    return Fork(job, after, event, models=names)


def _frame(request: Request, visitor: Visitor, title: str) -> Frame:
    return Frame.of(request, visitor, title=title, section="/jobs")


After = Annotated[int | None, Query(ge=1)]


@router.get("/fork")
async def write_fork(request: Request, visitor: VisitorDependency, job_id: JobId, after: After = None) -> HTMLResponse:
    """Show the form of a fork."""
    page = await read(visitor.client, job_id, after)
    return await show(request, TEMPLATE, _frame(request, visitor, f"Fork of {job_id}"), page=page)


@router.post("/fork")
async def fork_job(
    request: Request, visitor: VisitorDependency, form: PostedForm, job_id: JobId, after: After = None
) -> Response:
    """Begin the fork, and show it beside its origin."""
    page = await read(visitor.client, job_id, after)
    try:
        headers = {"Idempotency-Key": key_of(form) or new_key()}
        begun = await visitor.client.post(f"/v1/jobs/{job_id}/fork", body_of(form, page), headers=headers)
        return go(f"/jobs/{begun['job_id']}/beside?origin={job_id}")
    except (NotAnObject, ApiError) as error:
        problem = reason_of(error) if isinstance(error, ApiError) else str(error)
        draft = {name: field_of(form, name) for name in (*FIELDS, "failed")}
        page = Fork(page.job, page.after, page.event, draft, page.models, problem)
    return await show(request, TEMPLATE, _frame(request, visitor, f"Fork of {job_id}"), status=422, page=page)


@router.get("/beside")
async def beside(
    request: Request,
    visitor: VisitorDependency,
    job_id: JobId,
    origin: Annotated[str | None, Query(pattern=JOB_ID)] = None,
) -> Response:
    """Show a fork beside its origin; a job that is none is shown alone.

    `origin` says it of a fork that has no log yet.
    """
    client = visitor.client
    fork = await client.job(job_id)
    origin_id = fork["origin"]["job_id"] if fork["origin"] else origin
    if origin_id is None:
        return go(f"/jobs/{job_id}")
    first, logs = await asyncio.gather(
        client.job(origin_id), asyncio.gather(client.log(origin_id), _log(client, job_id))
    )
    answers = of_versions(first["answer"] or "", fork["answer"] or "") if fork["ended_at"] else None
    page = Beside(first, fork, steps_of(logs[0]), steps_of(logs[1]), answers)
    return await show(request, BESIDE_TEMPLATE, _frame(request, visitor, f"{job_id} beside its origin"), page=page)


async def _log(client: Client, job_id: str) -> list[dict[str, Any]]:
    """Return a job's log; of one that is queued there is none yet."""
    try:
        return await client.log(job_id)
    except ApiError as error:
        if error.status not in (404, 409):
            raise
        return []
