"""A job's events: as they happen, or as a list."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from fastapi.sse import EventSourceResponse
from pydantic import BeforeValidator, Field

from wayline.gateway.event_streams import UNBUFFERED, as_list, none_if_empty
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader
from wayline.gateway.handlers.shared.own_jobs import OwnJobPath
from wayline.gateway.handlers.shared.read_job import find_log
from wayline.gateway.openapi import EVENT, STREAMED, event_stream, fails
from wayline.gateway.queue_news import while_queued
from wayline.gateway.reasoning import ReasoningView
from wayline.gateway.strict_json import StrictRoute
from wayline.journal import Head, JobLog, State, follow, with_progress

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)

SEQ_MAX = 2**53
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The events; `data` of each is JSON: an `Event`, a `Delta` where the event "
        "is `delta`, a `Progress` where it is `progress`, and a `QueuePlace` where it is `queue`",
        "content": {
            "text/event-stream": {
                "schema": event_stream(STREAMED),
                "example": 'event: job.submitted\ndata: {"type":"job.submitted","seq":1}\nid: 1\n\n',
            },
            "application/json": {"schema": {"type": "array", "items": EVENT}},
        },
    },
    204: {"description": "The job has ended and this client has seen all of it: do not come back"},
}


@router.get("/{job_id}/events", response_class=Response, responses={**_ANSWERS, **fails(404)})
async def get_events(
    *,
    job_id: OwnJobPath,
    request: Request,
    gateway: GatewayDependency,
    caller: Reader,
    after: Annotated[int, Query(ge=0, le=SEQ_MAX, description="Only events past this `seq`.")] = 0,
    last_event_id: Annotated[
        Annotated[int, Field(ge=0, le=SEQ_MAX)] | None,
        BeforeValidator(none_if_empty),
        Header(description="The same, as an EventSource sends it when it comes back."),
    ] = None,
    progress: Annotated[
        bool, Query(description="Say between the events also what the job does, for a user interface.")
    ] = False,
) -> Response:
    """Follow a job: what has happened, then what happens, until its end; `id` is the event's `seq`.

    Pieces of text come as `delta` events without an id, and are not repeated; each names the `step` and the `attempt`
    of the model call that writes it. `model.failed` takes back all text of its `step` and `attempt` (`retracted_chars`
    of it): show a call's text under its step and attempt, drop it at that event, and nothing is shown twice.
    With `progress=true` there are `progress` events too, without an id, each before the event that it is derived from:
    a state that begins or is over, the step, its tools, and what they came to in one line; `running` while a tool's
    server says how far it is. While the job waits for an
    executor for more than a second, `queue` events say its place when it has changed, at most one every two seconds.
    `Accept: application/json` gives the events so far as a list.
    What a model let us read of its thinking is left out, unless `show_reasoning` is on for the job.
    """
    after = last_event_id if last_event_id is not None else after
    head = await find_log(gateway, caller.tenant, job_id)
    accept = request.headers.get("accept", "")
    log = JobLog(gateway.bus, caller.tenant, job_id)
    view = ReasoningView(await log.first() if head is not None and after else [])
    if "application/json" in accept and "text/event-stream" not in accept:
        feed = as_list(view.listed(log.read(after)))
        return StreamingResponse(feed, media_type="application/json")
    if head is not None and head.state == State.ENDED and after >= head.seq:
        # An EventSource comes back after every end; only 204 tells it that nothing will follow.
        return Response(status_code=204, headers={**UNBUFFERED, "Content-Type": EventSourceResponse.media_type})
    gateway.streams.require_room(caller)
    if progress:
        # What a job does follows from all its events, also from those that this client has seen.
        watch = gateway.queues.watch(caller.tenant, job_id) if is_queued(head) else None
        beside = watch.report_places if watch else None
        news = follow(gateway.bus, caller.tenant, job_id, beside=beside, calls=True)
        news = with_progress(news, after)
        news = while_queued(news, watch) if watch else news
    else:
        news = follow(gateway.bus, caller.tenant, job_id, after)
    return EventSourceResponse(gateway.streams.events(view.followed(news), caller), headers=UNBUFFERED)


def is_queued(head: Head | None) -> bool:
    """Return whether no executor has begun a job, as its last record says; None: it has no log yet."""
    return head is None or head.state is State.NEW
