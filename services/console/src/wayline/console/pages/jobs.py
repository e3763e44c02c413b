"""Jobs: found by words and conditions, each with the columns that one chooses, and live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from pydantic import AwareDatetime, StringConstraints

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.console.access.visitor import PostedForm, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages import job_search
from wayline.console.pages.file_download import file_of
from wayline.console.pages.frame import Frame, go, own_address, show
from wayline.console.pages.job import JOB_ID
from wayline.console.pages.job_actions import ACTIONS
from wayline.console.pages.job_search import JobSearch
from wayline.console.pages.kept_searches import kept_by
from wayline.console.pages.live_events import heartbeats, sse, stream_of
from wayline.console.render.formats import utc_now

router = APIRouter()
TEMPLATE = "jobs.html"
ROWS_TEMPLATE = "job_rows.html"
PAGE_SIZE = 50
SEARCH_MAX_CHARS = 500
SORTS: Final = (("newest", "newest"), ("oldest", "oldest"), ("dearest", "dearest"), ("slowest", "slowest"))
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
LOOK_AFTER_S: Final = 1.5
"""How long after a stream begins the list has what came before it."""
ROW_TYPES: Final = "job.*,model.completed,approval.*"
"""Events after which a row of the list is another."""

NOTHING: Final[Mapping[str, str | list[str]]] = MappingProxyType({})
"""What the jobs of a list without a search meet."""

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
    more = {"sorts": SORTS, "columns": COLUMNS, "actions": ACTIONS, "kept": kept_by(request)}
    return await show(request, TEMPLATE, frame, page=found, **more)


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
async def news(
    request: Request, visitor: VisitorDependency, since: Annotated[AwareDatetime | None, Query()] = None, s: Search = ""
) -> Response:
    """Stream which jobs are new in the list of a search and which have changed, without end.

    `since`: when the list was read.
    """
    search = job_search.parse(s, now=utc_now(), zone=request.app.state.templates.zone)
    narrowed = {name: value for name, value in search.parameters.items() if name != "sort"}
    return stream_of(heartbeats(news_of(visitor.client, since, narrowed)))


async def news_of(
    client: Client,
    since: datetime | None = None,
    narrowed: Mapping[str, str | list[str]] = NOTHING,
    *,
    look_after_s: float = LOOK_AFTER_S,
) -> AsyncIterator[bytes]:
    """Yield one event for each of any job after which its row is another.

    A moment after the beginning, and after a gap, the list is asked too which jobs are new since it was read: of those
    that came while nobody listened no event tells. `narrowed`: what the list's jobs meet. No event tells that of a job,
    so the list is asked after each.
    """
    clock = asyncio.get_running_loop().time
    looks_at = clock() + look_after_s if since else None
    following: asyncio.Task[dict[str, Any]] | None = None
    async with aclosing(client.tenant_events(types=ROW_TYPES)) as events:
        try:
            while True:
                following = following or asyncio.ensure_future(_next(events))
                left = None if looks_at is None else max(looks_at - clock(), 0)
                done, _ = await asyncio.wait({following}, timeout=left)
                if not done:
                    looks_at = None
                    for job_id in await _newer(client, since, narrowed):
                        yield sse("new", {"job_id": job_id})
                    continue
                finished, following = following, None
                try:
                    event = finished.result()
                except StopAsyncIteration:
                    return
                if since and (narrowed or event["type"] == "gap"):
                    looks_at = looks_at or clock() + look_after_s
                for told in _told(event, is_narrowed=bool(narrowed)):
                    yield told
        finally:
            if following is not None:
                following.cancel()
                await asyncio.wait({following})


def _told(event: dict[str, Any], *, is_narrowed: bool) -> Iterator[bytes]:
    """Yield what a list is told of an event."""
    if event["type"] == "gap":
        yield sse("gap", {})
    elif "job_id" in event and event["type"] not in NEWS:
        yield sse("changed", {"job_id": event["job_id"]})
    elif "job_id" in event and not is_narrowed:
        yield sse("new", {"job_id": event["job_id"]})


async def _next(events: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    return await anext(events)


async def _newer(client: Client, since: datetime | None, narrowed: Mapping[str, str | list[str]]) -> list[str]:
    """Return the jobs that were accepted since and meet a search; none where the list cannot be read now."""
    least = [since] if since else []
    if isinstance(own := narrowed.get("since"), str):
        least.append(datetime.fromisoformat(own))
    try:
        page = await client.get(
            "/v1/jobs", **{**narrowed, "since": max(least).isoformat() if least else None, "limit": PAGE_SIZE}
        )
    except ApiError:
        return []
    return [job["job_id"] for job in page["jobs"]]
