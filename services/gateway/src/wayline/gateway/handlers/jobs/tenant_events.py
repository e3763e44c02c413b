"""One stream of what happens to all of a tenant's jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response
from fastapi.sse import EventSourceResponse
from pydantic import BeforeValidator, Field

from wayline.gateway.event_streams import UNBUFFERED, none_if_empty
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Reader, acting_as
from wayline.gateway.openapi import event_stream, fails
from wayline.gateway.shapes.tenant_events import EventFilter, TenantEvent
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)

_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The events; `data` of each is JSON: a `TenantEvent`, or a `Gap` where the event is `gap`",
        "content": {
            "text/event-stream": {
                "schema": event_stream(TenantEvent.model_json_schema()),
                "example": 'event: job.completed\ndata: {"job_id":"j1","seq":9,"type":"job.completed"}\nid: 4711.1\n\n',
            }
        },
    }
}


@router.get("/events", response_class=Response, responses={**_ANSWER, **fails(429)})
async def get_tenant_events(
    gateway: GatewayDependency,
    caller: Reader,
    query: Annotated[EventFilter, Query()],
    last_event_id: Annotated[
        Annotated[str, Field(pattern=r"^\d{1,16}(\.\d{1,6})?$")] | None,
        BeforeValidator(none_if_empty),
        Header(description="The `id` that this client saw last: what happened since is told first, for an hour."),
    ] = None,
) -> Response:
    """Follow what happens to all jobs of the tenant, from now on, without end.

    The events say what happened and not the words, which `GET /v1/jobs/{id}/events` tells. Each has an `id`; a client
    that comes back with it within an hour misses nothing and gets nothing twice. One that comes later is told by `gap`
    from when on it is told. A comment comes every 15 s, with an `id` as well. A client that reads too slowly is cut
    off, and comes back with its `id`. A key of one user hears of that user's jobs alone.
    """
    wanted = query.model_copy(update={"user_id": acting_as(caller, query.user_id)})
    gateway.streams.require_room(caller)
    gateway.feeds.require_room(caller.tenant)
    feed = gateway.feeds.follow(caller.tenant, wanted, last_id=last_event_id)
    return EventSourceResponse(gateway.streams.written(feed, caller, encoded=bytes), headers=UNBUFFERED)
