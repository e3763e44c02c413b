"""Insights: facts about subjects."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from wayline.contracts.errors import Reject
from wayline.contracts.memory import (
    Fact,
    FactPage,
    FactsRecalled,
    FactsSaved,
    InsightCategory,
    ListInsights,
    MemoriesForgotten,
    RecallInsights,
    StoreInsights,
    SubjectRef,
    WrittenBy,
)
from wayline.gateway.conditions import IfUnchanged
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey
from wayline.gateway.handlers.memory.facts import (
    FactPath,
    States,
    changed,
    decided,
    forgotten,
    insight_of,
    save_key,
    tag_of,
)
from wayline.gateway.handlers.shared.changing import tagged
from wayline.gateway.handlers.shared.dependencies import GatewayDependency, MemoryReleaser, Reader, Writer
from wayline.gateway.openapi import fails, tags
from wayline.gateway.parameters import Cursor
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.memories import DecisionBody, FactChangeBody, RecallInsightsBody, StoreInsightsBody
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


@router.get("/{fact_id}", responses=tags(404))
async def get_insight(fact_id: FactPath, gateway: GatewayDependency, caller: Reader, response: Response) -> Fact:
    """Return an insight with where it is from."""
    found = await insight_of(gateway, caller, fact_id)
    return tagged(response, found, tag_of(found))


@router.patch("/{fact_id}", responses=tags(404, 409, 412, 413))
async def change_insight(
    *,
    fact_id: FactPath,
    body: FactChangeBody,
    gateway: GatewayDependency,
    caller: Writer,
    condition: IfUnchanged,
    response: Response,
) -> Fact:
    """Change an insight: a new version supersedes it."""
    fact = await changed(gateway, caller, lambda: insight_of(gateway, caller, fact_id), body, condition)
    return tagged(response, fact, tag_of(fact))


@router.post("/{fact_id}/release", responses=fails(404, 409))
async def release_insight(
    fact_id: FactPath, body: DecisionBody, gateway: GatewayDependency, caller: MemoryReleaser
) -> Fact:
    """Let a quarantined insight count from now on, as the word of the caller."""
    return await decided(gateway, caller, await insight_of(gateway, caller, fact_id), "release", body.reason)


@router.post("/{fact_id}/reject", responses=fails(404, 409))
async def reject_insight(
    fact_id: FactPath, body: DecisionBody, gateway: GatewayDependency, caller: MemoryReleaser
) -> Fact:
    """Refuse a quarantined insight for good."""
    return await decided(gateway, caller, await insight_of(gateway, caller, fact_id), "reject", body.reason)


@router.delete("/{fact_id}", responses=fails(404))
async def delete_insight(fact_id: FactPath, gateway: GatewayDependency, caller: Writer) -> MemoriesForgotten:
    """Delete an insight with all of its versions."""
    return await forgotten(gateway, caller, await insight_of(gateway, caller, fact_id))
