"""Spans of a tenant's own programs, as OpenTelemetry's exporters send them over HTTP."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from wayline.contracts.errors import Reject
from wayline.contracts.received_spans import ReceiveSpans, SpansReceived
from wayline.gateway.bounded_turns import BoundedTurns
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, Writer
from wayline.gateway.handlers.shared.own_jobs import require_all_users
from wayline.gateway.openapi import fails
from wayline.gateway.otlp_body import JSON, PROTOBUF, encode_answer, read_parts

router = APIRouter(prefix="/otlp/v1", tags=["traces"])
AT_ONCE, AT_ONCE_PER_TENANT, WAITING_PER_TENANT = 2, 1, 8
"""Requests that a process reads: one of four megabytes may take a hundred while it is read."""
INVALID = "ids are not ids, or a span or its resource is too large"
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "An OTLP `ExportTraceServiceRequest`, packed by gzip or not.",
        "content": {PROTOBUF: {"schema": {"type": "string", "format": "binary"}}, JSON: {"schema": {"type": "object"}}},
    }
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "An `ExportTraceServiceResponse`, with how many spans were rejected.",
        "content": {PROTOBUF: {"schema": {"type": "string", "format": "binary"}}, JSON: {"schema": {"type": "object"}}},
    }
}


def span_turns() -> BoundedTurns:
    """Return the turns at reading spans that a process has."""
    return BoundedTurns(
        "the reading of spans",
        at_once=AT_ONCE,
        at_once_per_tenant=AT_ONCE_PER_TENANT,
        waiting_per_tenant=WAITING_PER_TENANT,
    )


@router.post("/traces", response_class=Response, responses={**_ANSWER, **fails(400, 413, 415)}, openapi_extra=_BODY)
async def receive_spans(request: Request, gateway: GatewayDependency, caller: Writer) -> Response:
    """Store spans of the tenant's own programs; the same ones again change nothing.

    A span joins the tree of a job that it has a link to, or whose id its attribute `wayline.job_id` says. All of its
    trace goes along. When this answers, the spans are stored.
    """
    require_all_users(caller, "spans are")
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (PROTOBUF, JSON):
        raise Reject(f"send {PROTOBUF} or {JSON}", code="unsupported_media_type", status=415)
    encoding = request.headers.get("content-encoding", "").strip().lower()
    body = await request.body()
    async with request.app.state.span_turns.turn(caller.tenant):
        # What strangers wrote is read on a thread.
        parts, rejected = await asyncio.to_thread(read_parts, body, media_type, encoding)
    reasons = {INVALID} if rejected else set()
    for part in parts:
        asked = ReceiveSpans(tenant=caller.tenant, otlp=b64encode(part.otlp).decode())
        said = await gateway.bus.ask(asked, SpansReceived)
        rejected += said.rejected
        reasons |= {said.reason} - {""}
    return Response(encode_answer(rejected, "; ".join(sorted(reasons)), media_type), media_type=media_type)
