"""Jobs of a filter as a file, read page by page and written as fast as its client reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import Response, StreamingResponse

from wayline.contracts.errors import Retry
from wayline.contracts.traces import JobPage, ListJobs
from wayline.gateway.errors import ExportCut
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader, acting_as
from wayline.gateway.handlers.shared.find_jobs import find_jobs
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.exported_jobs import MEDIA_TYPES, ExportQuery, Format, heading, line
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)

PAGE: Final = 50
"""Jobs that tracing reads at once, each with its whole answer."""
TRIES: Final = 5
"""Of a page, while tracing or its database is away; after that the connection ends in the middle."""
AGAIN_S: Final = 1.0
_FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The file: whole, or cut off in the middle of its transfer",
        "content": {media.partition(";")[0]: {"schema": {"type": "string"}} for media in MEDIA_TYPES.values()},
    }
}


@router.get("/export", response_class=Response, responses={**_FILE, **fails(429)})
async def export_jobs(gateway: GatewayDependency, caller: Reader, query: Annotated[ExportQuery, Query()]) -> Response:
    """Export all jobs that meet all conditions, the newest first, with their whole answers.

    `format=csv` is a table of every field; a text that a spreadsheet would take for a formula has a `'` before it.
    Jobs that are accepted meanwhile are not in it. While it is read it counts as a client that follows a job.
    """
    now = datetime.now(UTC)
    asked = query.asked(caller.tenant, user_id=acting_as(caller, query.user_id)).model_copy(
        update={"limit": PAGE, "until": min(query.until or now, now), "whole_answers": True}
    )
    gateway.streams.require_room(caller)
    # Before the answer begins: what is wrong with the question is an error of its own.
    first = await find_jobs(gateway, asked)
    disposition = {"Content-Disposition": f'attachment; filename="jobs.{query.format}"'}
    file = _file(gateway, caller, asked, first, query.format)
    return StreamingResponse(file, media_type=MEDIA_TYPES[query.format], headers=disposition)


async def _file(
    gateway: Gateway, caller: Caller, asked: ListJobs, page: JobPage, format: Format
) -> AsyncGenerator[bytes]:
    """Yield the file page by page; one page is held at a time.

    Every error, and the stop of the process, breaks the transfer off: half of a file is never taken for the whole.
    """
    with gateway.streams.follower(caller):
        yield heading(format)
        while True:
            yield b"".join(line(job, format) for job in page.jobs)
            if page.next_cursor is None:
                return
            page = await _next(gateway, asked.model_copy(update={"cursor": page.next_cursor}))


async def _next(gateway: Gateway, asked: ListJobs) -> JobPage:
    for _ in range(TRIES - 1):
        try:
            return await find_jobs(gateway, asked)
        except Retry:
            await asyncio.sleep(AGAIN_S)
    try:
        return await find_jobs(gateway, asked)
    except Retry as error:
        raise ExportCut(str(error)) from None
