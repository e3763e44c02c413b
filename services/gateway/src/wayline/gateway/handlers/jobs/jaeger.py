"""Jaeger's query API over our traces: Grafana's Jaeger datasource and Jaeger's own page explore them without Tempo."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from wayline.contracts.errors import NotFound, Refused
from wayline.contracts.span_search import ListSpanNames, SpanNames
from wayline.contracts.traces import GetTrace, Trace
from wayline.gateway.handlers.jobs.traces import find_spans, find_trace
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.shapes.jaeger_traces import JaegerQuery, Json, jaeger_answer, jaeger_trace
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/jaeger/api", tags=["traces"], route_class=StrictRoute)
AT_ONCE_MAX = 8
"""Traces of one search that are read at the same time."""
SPANS_A_TRACE_MAX = 1_000
"""Of each trace that a search finds; asked for by its id it is whole."""
SPANS_MAX = 20_000
"""Of one search: no further traces are read after so many."""
SHORTENED_ID = r"^[0-9a-fA-F]{1,32}$"
"""Jaeger leaves out the zeros that an id begins with."""


@router.get("/services", responses=fails())
async def list_jaeger_services(gateway: GatewayDependency, caller: Reader) -> dict[str, Any]:
    """Return the services of the newest spans."""
    names = await _names(gateway, caller)
    return jaeger_answer(sorted({name.service for name in names.names}))


@router.get("/services/{service}/operations", responses=fails())
async def list_jaeger_operations(
    service: Annotated[str, Path(max_length=256)], gateway: GatewayDependency, caller: Reader
) -> dict[str, Any]:
    """Return what a service calls its newest spans."""
    names = await _names(gateway, caller)
    return jaeger_answer(sorted({name.name for name in names.names if name.service == service}))


@router.get("/traces", responses=fails(400))
async def search_jaeger_traces(
    request: Request, gateway: GatewayDependency, caller: Reader, query: Annotated[JaegerQuery, Query()]
) -> dict[str, Any]:
    """Return traces that have a span which meets every condition, the newest first: 20,000 spans, 1,000 of a trace."""
    found = await find_spans(request, gateway, query.asked(caller.tenant, user_id=caller.user_id))
    now, data, spans = datetime.now(UTC), list[Json](), 0
    for at in range(0, len(found.spans), AT_ONCE_MAX):
        if spans >= SPANS_MAX:
            break
        read = (_read(gateway, caller, span.trace_id) for span in found.spans[at : at + AT_ONCE_MAX])
        traces = [trace for trace in await asyncio.gather(*read) if trace is not None]
        data += [jaeger_trace(trace, now=now, spans_max=SPANS_A_TRACE_MAX) for trace in traces]
        spans += sum(trace.totals.spans for trace in traces)
    return jaeger_answer(data)


@router.get("/traces/{trace_id}", responses=fails(404))
async def get_jaeger_trace(
    trace_id: Annotated[str, Path(pattern=SHORTENED_ID)], gateway: GatewayDependency, caller: Reader
) -> dict[str, Any]:
    """Return one trace by its id."""
    trace = await find_trace(gateway, caller, trace_id.lower().zfill(32))
    return jaeger_answer([jaeger_trace(trace, now=datetime.now(UTC))])


async def _names(gateway: Gateway, caller: Caller) -> SpanNames:
    return await gateway.bus.ask(ListSpanNames(tenant=caller.tenant, user_id=caller.user_id), SpanNames)


async def _read(gateway: Gateway, caller: Caller, trace_id: str) -> Trace | None:
    """Return a trace, or None where it went meanwhile."""
    try:
        asked = GetTrace(tenant=caller.tenant, trace_id=trace_id, user_id=caller.user_id, spans_max=SPANS_A_TRACE_MAX)
        return await gateway.bus.ask(asked, Trace)
    except (NotFound, Refused) as error:
        if error.status != NotFound.status:
            raise
        return None
