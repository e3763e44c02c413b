"""The stream of a running job's page: what its page is read anew after, and the text that a model writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response

from wayline.client.client import TERMINAL, Client
from wayline.console.access.visitor import VisitorDependency
from wayline.console.pages.job import ENDED, JobId
from wayline.console.pages.live_events import heartbeats, sse, stream_of
from wayline.console.render.shown_progress import queue_words, told_progress

router = APIRouter(prefix="/jobs/{job_id}")
QUEUE: Final = "queue"
"""In the place of a state while no executor has begun a job."""


@router.get("/live")
async def live(
    visitor: VisitorDependency,
    job_id: JobId,
    after: Annotated[int, Query(ge=0)] = 0,
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
) -> Response:
    """Stream that something changed, with its place in the log as id; 204 ends it, as a browser then asks no more."""
    after = max(after, last_event_id or 0)
    job = await visitor.client.job(job_id)
    if job["status"] in ENDED and all(event["seq"] <= after for event in await visitor.client.log(job_id)):
        return Response(status_code=204)
    return stream_of(heartbeats(told_of(visitor.client, job_id, after)))


async def told_of(client: Client, job_id: str, after: int) -> AsyncIterator[bytes]:
    """Yield one event for each of the job: what its page shows is read anew, and only streamed text travels here."""
    async with aclosing(client.events(job_id, after, progress=True)) as events:
        async for event in events:
            if event["type"] == "delta":
                piece = {"text": event.get("text", ""), "offset": event.get("offset")}
                yield sse("delta", {**piece, "of": _attempt(event)})
            elif event["type"] == "progress":
                if (told := told_progress(event)) is not None:
                    yield sse("progress", {"message": told.words, "of": told.key})
            elif event["type"] == "queue":
                yield sse("progress", {"message": queue_words(event), "of": QUEUE})
            elif "seq" in event:
                yield sse("changed", {"type": event["type"], "of": _attempt(event)}, event_id=event["seq"])
            if event["type"] in TERMINAL:
                return


def _attempt(event: dict[str, Any]) -> str:
    """Return which call of the model an event is of."""
    return f"{event.get('step')}/{event.get('attempt')}"
