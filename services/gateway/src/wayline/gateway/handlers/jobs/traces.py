"""Traces, steps and costs, as tracing answers them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from wayline.contracts.errors import Unavailable
from wayline.contracts.span_search import SearchSpans, SpanPage
from wayline.contracts.traces import CostTable, GetSteps, GetTrace, StepList, Trace
from wayline.gateway.bounded_turns import BoundedTurns
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader
from wayline.gateway.handlers.shared.own_jobs import OwnJobPath, require_all_users, require_own_job
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.paging import PAGE_MAX, PageCursor, Paged, PageLimit, page_in_order
from wayline.gateway.shapes.cost_query import CostQuery, as_csv
from wayline.gateway.shapes.span_query import SpanQuery
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1", tags=["traces"], route_class=StrictRoute)

SEARCHES, SEARCHES_PER_TENANT, SEARCHES_WAITING_PER_TENANT = 2, 1, 16
"""Searches for spans of one process: each reads half a million spans at most, with one of tracing's six connections."""

SPANS_MAX = 20_000


class StepPage(StepList, Paged):
    """A page of a job's steps."""


@router.get("/jobs/{job_id}/trace", responses=fails(404))
async def get_job_trace(
    job_id: OwnJobPath,
    gateway: GatewayDependency,
    caller: Reader,
    spans_max: Annotated[
        int | None,
        Query(
            ge=1, le=SPANS_MAX, description="Only so many of its spans: those of its log, then those that began first."
        ),
    ] = None,
) -> Trace:
    """Return the tree of everything a job did, with latency, tokens and cost of each span and in total."""
    asked = GetTrace(tenant=caller.tenant, job_id=job_id, user_id=caller.user_id, spans_max=spans_max)
    return await gateway.bus.ask(asked, Trace)


@router.get("/jobs/{job_id}/steps", responses=fails(400, 404))
async def get_job_steps(
    job_id: OwnJobPath,
    gateway: GatewayDependency,
    caller: Reader,
    limit: PageLimit = PAGE_MAX,
    cursor: PageCursor = None,
) -> StepPage:
    """Page through a job's steps in order: what it thought, which tool it used, and what came of it."""
    found = await gateway.bus.ask(GetSteps(tenant=caller.tenant, job_id=job_id), StepList)
    numbered = list(enumerate(found.steps))
    # By their places: what a job does is added behind them.
    page = page_in_order(numbered, limit=limit, cursor=cursor, key=lambda one: str(one[0]))
    return StepPage(job_id=found.job_id, steps=tuple(step for _, step in page.items), next_cursor=page.next_cursor)


@router.get("/traces", responses=fails(400))
async def search_spans(
    request: Request, gateway: GatewayDependency, caller: Reader, query: Annotated[SpanQuery, Query()]
) -> SpanPage:
    """Return spans that meet every condition, the newest first, each with the id of its trace.

    A page may have fewer spans than its limit although there is a next one: each looks at so many spans at most.
    """
    return await find_spans(request, gateway, query.asked(caller.tenant, user_id=caller.user_id))


def search_turns() -> BoundedTurns:
    """Return the turns at searches for spans that a process has."""
    return BoundedTurns(
        "the search for spans",
        at_once=SEARCHES,
        at_once_per_tenant=SEARCHES_PER_TENANT,
        waiting_per_tenant=SEARCHES_WAITING_PER_TENANT,
    )


async def find_spans(request: Request, gateway: Gateway, asked: SearchSpans) -> SpanPage:
    """Return a page of spans. Raises Full where too many searches of the tenant wait."""
    async with request.app.state.search_turns.turn(asked.tenant):
        return await gateway.bus.ask(asked, SpanPage)


@router.get("/traces/{trace_id}", responses=fails(404))
async def get_trace(
    trace_id: Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")], gateway: GatewayDependency, caller: Reader
) -> Trace:
    """Return a trace by its own id."""
    return await find_trace(gateway, caller, trace_id)


async def find_trace(gateway: Gateway, caller: Caller, trace_id: str) -> Trace:
    """Return a trace that the caller may know of. Raises NotFound or Forbidden."""
    asked = GetTrace(tenant=caller.tenant, trace_id=trace_id, user_id=caller.user_id)
    trace = await gateway.bus.ask(asked, Trace)
    if trace.job_id is None:
        require_all_users(caller, "a trace without a job may be")
    else:
        await require_own_job(gateway, caller, trace.job_id)
    return trace


@router.get(
    "/costs",
    response_model=CostTable,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **fails()},
)
async def get_costs(gateway: GatewayDependency, caller: Reader, query: Annotated[CostQuery, Query()]) -> Response:
    """Return what was spent, grouped: dollars, tokens, what prompt caches saved, and which costs are unknown."""
    require_all_users(caller, "costs are")
    asked = query.asked(caller.tenant)
    costs = await gateway.bus.ask(asked, CostTable)
    if missed := set(asked.newer_conditions) - set(costs.filtered_by):
        # It would be the cost of all versions, or of all jobs.
        known_as = ", ".join(sorted(missed))
        raise Unavailable("tracing", detail=f"a process of it is of before 0.2.0 and does not know {known_as}")
    if query.format == "csv":
        file = {"Content-Disposition": 'attachment; filename="costs.csv"'}
        return Response(as_csv(costs, asked.group_by), media_type="text/csv; charset=utf-8", headers=file)
    return Response(costs.model_dump_json(), media_type="application/json")
