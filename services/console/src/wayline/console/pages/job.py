"""A job: what it was asked, what it did step by step, why, and what that cost; live while it runs."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from wayline.client import ApiError
from wayline.client.client import TERMINAL, Client
from wayline.client.park_reasons import in_words
from wayline.console.access.visitor import PostedForm, Visitor, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.approvals import schemas_of
from wayline.console.pages.event_filter import EventFilter
from wayline.console.pages.frame import Frame, go, show, show_region
from wayline.console.pages.job_log import read_log
from wayline.console.pages.refusal import reason_of
from wayline.console.pages.streamed_page import Part, stream
from wayline.console.render.formats import lasted_ms, utc_now
from wayline.console.render.prompt_context import ModelCall, model_calls
from wayline.console.render.schema_fields import SchemaField, fields_of
from wayline.console.render.shown_progress import ShownProgress, queue_words, told_progress
from wayline.console.render.steps import Step, newest_of, steps_of
from wayline.console.render.waterfall import ROWS_FIRST, ROWS_MAX, Waterfall, waterfall

router = APIRouter(prefix="/jobs/{job_id}")
TEMPLATE = "job.html"
EVENTS_SHOWN = 300
"""Events of one page, the newest; a filter or the raw log has the others."""
CALLS_FIRST = 60
"""Calls of a conversation at first, the newest: the page is read anew while the job runs."""
CALLS_SHOWN = 200
"""The same where more are asked for."""
CHARS_OF_CALLS = 160_000
"""Of the arguments and results of one page."""
CALLS_SHOWN_WHOLE = 8
CALL_MIN_CHARS = 400
DECIDED: Final = ("approval", "needs_decision")
"""What a job waits for that a person decides."""
ENDED: Final = frozenset({"completed", "failed", "cancelled"})
SPANS_WITHIN_S: Final = 5.0
"""How long after a job's end a page of its trace is read again for spans that are not stored yet."""
OPEN_SPANS_WITHIN_S: Final = 30.0
"""The same while a stored span has not ended."""

JOB_ID: Final = r"^[A-Za-z0-9_.:=+@-]{1,128}$"
JobId: TypeAlias = Annotated[str, Path(pattern=JOB_ID)]
View = Literal["conversation", "events", "trace", "context", "raw"]
VIEWS: Final = (
    ("conversation", "Conversation"),
    ("trace", "Trace"),
    ("context", "Context"),
    ("events", "Events"),
    ("raw", "Raw"),
)


NO_FILTER: Final = EventFilter()


class ViewOfJob(EventFilter):
    """Which view of a job is shown, which events in it, and whether as many calls or spans as a page bears."""

    view: View = "conversation"
    more: Literal["", "all"] = ""

    @property
    def is_long(self) -> bool:
        return self.more == "all"


Shown: TypeAlias = Annotated[ViewOfJob, Query()]


@dataclass(frozen=True, slots=True)
class JobPage:
    """What a job's page shows."""

    job: dict[str, Any]
    view: View
    steps: list[Step]
    events: list[dict[str, Any]]
    trace: Waterfall | None
    waits: list[dict[str, Any]]
    calls_left_out: int = 0
    """Older calls that the conversation does not show."""
    only: EventFilter = NO_FILTER
    """Events that meet it alone are shown."""
    problem: str = ""
    schemas: dict[str, Any] = field(default_factory=dict)
    """Of the arguments of tools whose calls wait."""
    ended_ago_s: float = math.inf
    """How long ago it ended; endless where that is not known."""
    is_long: bool = False
    """As many calls or spans as a page bears are shown."""

    def fields(self, wait: dict[str, Any]) -> list[SchemaField]:
        """Return the fields of a call that waits; none: it is edited as JSON."""
        return fields_of(self.schemas.get(wait["tool"]), wait["arguments"]) if wait["why"] == "approval" else []

    @property
    def is_live(self) -> bool:
        return self.job["status"] not in ENDED

    @property
    def awaits_spans(self) -> bool:
        """Return whether the job has ended and spans of its trace may be to come, stored a moment after their end.

        One that has not ended says so; of one that other services have yet to store nothing tells.
        """
        if self.is_live or self.trace is None:
            return False
        return self.ended_ago_s < (OPEN_SPANS_WITHIN_S if self.trace.is_open else SPANS_WITHIN_S)

    @property
    def changes(self) -> bool:
        """Return whether what is shown may be another a moment later."""
        return self.is_live or self.awaits_spans

    @property
    def waiting(self) -> str:
        """Return what the job waits for, in words; empty: nothing."""
        waiting = self.job["waiting_for"]
        return in_words(self.job["job_id"], waiting).splitlines()[0] if waiting else ""

    @property
    def is_queued(self) -> bool:
        """Return whether no executor has begun it."""
        return self.job["status"] == "queued"

    @property
    def progress(self) -> ShownProgress | None:
        """Return what the job does right now; None: it waits, or has ended."""
        return told_progress(self.job.get("progress")) if self.is_live else None

    @property
    def queue(self) -> str:
        """Return where a job stands that no executor has begun, in words."""
        return queue_words(self.job.get("queue"))

    @property
    def has_more_calls(self) -> bool:
        """Return whether the page may show more of its calls."""
        return self.calls_left_out > 0 and not self.is_long

    @property
    def call_chars(self) -> int:
        """Return how much of each argument and result is shown: all together no more than a page bears."""
        calls = sum(len(step.calls) for step in self.steps)
        return max(CHARS_OF_CALLS // max(calls, CALLS_SHOWN_WHOLE) // 2, CALL_MIN_CHARS)

    @property
    def seq(self) -> int:
        """Return the place in its log up to which the page shows it."""
        return max((event["seq"] for event in self.events), default=0)

    @property
    def kinds(self) -> list[str]:
        return sorted({event["type"] for event in self.events})

    @property
    def shown(self) -> list[dict[str, Any]]:
        """Return the events that are shown."""
        return self.matching[-EVENTS_SHOWN:]

    @property
    def matching(self) -> list[dict[str, Any]]:
        return [event for event in self.events if self.only.meets(event)]

    @property
    def tools(self) -> list[str]:
        return sorted({event["tool"] for event in self.events if isinstance(event.get("tool"), str)})

    @property
    def model_calls(self) -> list[ModelCall]:
        """Return what each call of the model was told."""
        return model_calls(self.events)

    @property
    def limits(self) -> dict[str, Any]:
        """Return what the job may take and spend, as it was routed; empty before."""
        routed = next((event for event in self.events if event["type"] == "job.routed"), None)
        return routed["limits"] if routed else {}

    @property
    def wants_budget(self) -> bool:
        waiting = self.job["waiting_for"]
        return bool(waiting) and waiting["why"] == "budget"

    @property
    def held_by(self) -> str:
        """Return the tenant's budget that holds the job; empty: its own does, and raising that lets it go on."""
        return (self.job["waiting_for"].get("budget") or "") if self.wants_budget else ""


async def read(
    visitor: Visitor,
    job_id: str,
    view: View,
    *,
    only: EventFilter = NO_FILTER,
    problem: str = "",
    is_long: bool = False,
    log: list[dict[str, Any]] | None = None,
) -> JobPage:
    """Ask the API for what one view of a job needs. `log`: what was read of it before.

    The log comes first: what is read after it is at least as new, so that the stream can go on behind it. A page of a
    job that has ended is not read again, so it needs the whole log.
    """
    client = visitor.client
    rows_max, calls_max = (ROWS_MAX, CALLS_SHOWN) if is_long else (ROWS_FIRST, CALLS_FIRST)
    events = await read_log(client, job_id) if log is None else log
    job, trace = await asyncio.gather(client.job(job_id), _trace_in(view, client, job_id, rows_max))
    has_ended = job["status"] in ENDED
    if has_ended and not (events and events[-1]["type"] in TERMINAL):
        events = await read_log(client, job_id)
    steps, left_out = newest_of(steps_of(events), calls_max) if view == "conversation" else ([], 0)
    waits = []
    if job["waiting_for"] and job["waiting_for"]["why"] in DECIDED:
        waits = await waits_of(client, job_id)
    schemas = await schemas_of(client, waits)
    ended_ms = lasted_ms(job["ended_at"], None, utc_now()) if has_ended else None
    ended_ago_s = math.inf if ended_ms is None else ended_ms / 1_000
    return JobPage(job, view, steps, events, trace, waits, left_out, only, problem, schemas, ended_ago_s, is_long)


async def waits_of(client: Client, job_id: str) -> list[dict[str, Any]]:
    """Return what a job waits for."""
    waits = (await client.approvals(job_id=[job_id]))["approvals"]
    # A gateway of the version before gives a page of all jobs'.
    return [wait for wait in waits if wait["job_id"] == job_id]


async def _trace_in(view: View, client: Client, job_id: str, rows_max: int) -> Waterfall | None:
    """Return a job's trace where its view shows it."""
    if view != "trace":
        return None
    try:
        # One more than a page shows says that there are more; a long job has thousands.
        found = await client.get(f"/v1/jobs/{job_id}/trace", spans_max=rows_max + 1)
    except ApiError as error:
        # A job whose spans have not been stored yet has no trace: a moment later it has.
        if error.status != 404:
            raise
        return Waterfall((), 0.0)
    return waterfall(found["root"], now=utc_now(), rows_max=rows_max)


def _frame(request: Request, visitor: Visitor, job_id: str) -> Frame:
    return Frame.of(request, visitor, title=job_id, section="/jobs")


@router.get("")
async def job(request: Request, visitor: VisitorDependency, job_id: JobId, only: Shown) -> StreamingResponse:
    """Show a job; of the two that every view needs its log is answered sooner, and says whether there is such a job."""
    log = await read_log(visitor.client, job_id)
    part = Part(lambda: read(visitor, job_id, only.view, only=only, is_long=only.is_long, log=log))
    return stream(request, TEMPLATE, _frame(request, visitor, job_id), part, views=VIEWS)


@router.get("/region")
async def region(request: Request, visitor: VisitorDependency, job_id: JobId, only: Shown) -> HTMLResponse:
    """Show the part of a job's page that changes while it runs."""
    page = await read(visitor, job_id, only.view, only=only, is_long=only.is_long)
    return await show_region(request, TEMPLATE, "region", _frame(request, visitor, job_id), page=page, views=VIEWS)


async def _act(
    request: Request, visitor: Visitor, job_id: str, path: str, *, body: dict[str, Any], done: str
) -> Response:
    """Send what a form asks for, and lead back to the job; a refusal is shown there."""
    try:
        await visitor.client.post(f"/v1/jobs/{job_id}/{path}", body)
    except ApiError as error:
        page = await read(visitor, job_id, "conversation", problem=reason_of(error))
        frame = _frame(request, visitor, job_id)
        return await show(request, TEMPLATE, frame, status=422, page=page, views=VIEWS)
    return go(f"/jobs/{job_id}", done=done)


@router.post("/cancel")
async def cancel(request: Request, visitor: VisitorDependency, form: PostedForm, job_id: JobId) -> Response:
    """Ask a job to stop."""
    return await _act(request, visitor, job_id, "cancel", body={"reason": field_of(form, "reason")}, done="cancelled")


@router.post("/budget")
async def raise_budget(request: Request, visitor: VisitorDependency, form: PostedForm, job_id: JobId) -> Response:
    """Let a job spend more."""
    body = {"budget_usd": field_of(form, "budget_usd")}
    return await _act(request, visitor, job_id, "budget", body=body, done="raised")


@router.post("/answers/{decision_id}")
async def answer(
    request: Request,
    visitor: VisitorDependency,
    form: PostedForm,
    job_id: JobId,
    decision_id: Annotated[str, Path(pattern=r"^[A-Za-z0-9_.:=+@-]{1,128}$")],
) -> Response:
    """Say what became of a call whose end nobody saw."""
    body = {"outcome": field_of(form, "outcome"), "content": field_of(form, "content")}
    return await _act(request, visitor, job_id, f"answers/{decision_id}", body=body, done="answered")


@router.post("/feedback")
async def judge(request: Request, visitor: VisitorDependency, form: PostedForm, job_id: JobId) -> Response:
    """Keep what a person thinks of the job."""
    body = {"label": field_of(form, "label"), "comment": field_of(form, "comment")}
    kept = {name: value for name, value in body.items() if value}
    return await _act(request, visitor, job_id, "feedback", body=kept, done="judged")
