"""Insights: facts about subjects."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from wayline.contracts.errors import Reject
from wayline.contracts.memory import (
    FactPage,
    FactsRecalled,
    FactsSaved,
    InsightCategory,
    ListInsights,
    RecallInsights,
    StoreInsights,
    SubjectRef,
    WrittenBy,
)
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey
from wayline.gateway.handlers.memory.fact_routes import FactRoutes, Versions
from wayline.gateway.handlers.memory.facts import (
    States,
    save_key,
    seen_by,
)
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader, Writer
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.parameters import Cursor
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.memories import RecallInsightsBody, StoreInsightsBody
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/insights", tags=["memory"], route_class=StrictRoute)


@router.get("", responses=fails(400))
async def list_insights(
    *,
    gateway: GatewayDependency,
    caller: Reader,
    subject_type: Annotated[str | None, Query(max_length=32, pattern=r"^[a-z][a-z0-9_-]*$")] = None,
    subject_id: Annotated[str | None, Query(min_length=1, max_length=128, pattern=ONE_LINE)] = None,
    states: States = ("active",),
    category: InsightCategory | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 20,
    cursor: Cursor = None,
) -> FactPage:
    """List insights: of a subject the most important, else page through all, the newest first."""
    if (subject_type is None) != (subject_id is None):
        raise Reject("name a subject by its type and its id", code="invalid_request", status=422)
    about = SubjectRef(type=subject_type, id=subject_id) if subject_type and subject_id else None
    asked = ListInsights(
        tenant=caller.tenant, about=about, states=states, category=category, limit=limit, cursor=cursor
    )
    return await gateway.bus.ask(asked, FactPage)


@router.post("", responses=fails(409, 413, 429))
async def store_insights(
    body: StoreInsightsBody, gateway: GatewayDependency, caller: Writer, idempotency_key: IdempotencyKey = None
) -> FactsSaved:
    """Remember insights about a subject; the answer says for each what became of it, and why one was refused."""
    asked = StoreInsights(
        tenant=caller.tenant,
        key=save_key(caller, idempotency_key),
        about=body.subject,
        other=body.other_subject,
        facts=tuple(one.fact() for one in body.facts),
        written=WrittenBy(source=body.source, conversation=body.conversation, by=caller.name),
        user_id=caller.user_id,
    )
    return await gateway.bus.ask(asked, FactsSaved)


@router.post("/recall", responses=fails(413))
async def recall_insights(body: RecallInsightsBody, gateway: GatewayDependency, caller: Reader) -> FactsRecalled:
    """Find what is known about a subject, by meaning, words and spelling; uses are not counted."""
    fields = body.model_dump(exclude={"subject"}, exclude_none=True)
    asked = RecallInsights.model_validate({"tenant": caller.tenant, "about": body.subject, **fields})
    return await gateway.bus.ask(asked, FactsRecalled)


async def _read(gateway: Gateway, caller: Caller, wanted: Versions) -> FactPage:
    asked = ListInsights(
        tenant=caller.tenant,
        fact_ids=(wanted.fact_id,),
        states=wanted.states,
        limit=wanted.limit,
        cursor=wanted.cursor,
    )
    return seen_by(caller, await gateway.bus.ask(asked, FactPage))


FactRoutes("insight", "an insight", _read).add_to(router)
