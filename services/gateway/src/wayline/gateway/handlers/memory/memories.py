"""Memories: facts about users."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from wayline.contracts import ids
from wayline.contracts.jobs import MEMORY_TAG, SUMMARY_INPUT, JobOptions, SubmitJob, Summarizing
from wayline.contracts.memory import (
    FactPage,
    FactsRecalled,
    FactsSaved,
    ListMemories,
    MemoryCategory,
    RecallMemories,
    SaveMemories,
    Tier,
    WrittenBy,
)
from wayline.contracts.memory_consolidation import (
    Consolidated,
    ConsolidateMemories,
    ConsolidationUndone,
    UndoConsolidation,
)
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey, current
from wayline.gateway.handlers.memory.fact_routes import FactRoutes, Versions
from wayline.gateway.handlers.memory.facts import (
    States,
    save_key,
    user_of,
)
from wayline.gateway.handlers.shared.dependencies import (
    Admin,
    Gateway,
    GatewayDependency,
    Reader,
    Writer,
    acting_as,
)
from wayline.gateway.handlers.shared.submit_job import submit
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.parameters import Cursor
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.jobs import Accepted
from wayline.gateway.shapes.memories import ConsolidateBody, RecallBody, SaveMemoriesBody, SummarizeBody
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/v1/memories", tags=["memory"], route_class=StrictRoute)


@router.get("", responses=fails(400, 404))
async def list_memories(
    *,
    gateway: GatewayDependency,
    caller: Reader,
    user_id: Annotated[str | None, Query(min_length=1, max_length=128, pattern=ONE_LINE)] = None,
    states: States = ("active",),
    category: MemoryCategory | None = None,
    tier: Tier | None = None,
    conversation: Annotated[str | None, Query(max_length=128, pattern=ONE_LINE)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Cursor = None,
) -> FactPage:
    """Page through memories, the newest first; `state=quarantined` are those that wait for a person."""
    asked = ListMemories(
        tenant=caller.tenant,
        user_id=user_of(caller, user_id),
        states=states,
        category=category,
        tier=tier,
        conversation=conversation,
        limit=limit,
        cursor=cursor,
    )
    return await gateway.bus.ask(asked, FactPage)


@router.post("", responses=fails(409, 413, 429))
async def save_memories(
    body: SaveMemoriesBody, gateway: GatewayDependency, caller: Writer, idempotency_key: IdempotencyKey = None
) -> FactsSaved:
    """Remember facts about a user; the answer says for each what became of it, and why one was refused."""
    user_id = acting_as(caller, body.user_id) or body.user_id
    asked = SaveMemories(
        tenant=caller.tenant,
        key=save_key(caller, idempotency_key),
        user_id=user_id,
        facts=tuple(one.fact() for one in body.facts),
        written=WrittenBy(source=body.source, conversation=body.conversation, by=caller.name),
    )
    return await gateway.bus.ask(asked, FactsSaved)


@router.post("/recall", responses=fails(404, 413))
async def recall_memories(body: RecallBody, gateway: GatewayDependency, caller: Reader) -> FactsRecalled:
    """Find what is remembered of a user, by meaning, words and spelling; uses are not counted."""
    fields = body.model_dump(exclude={"user_id"}, exclude_none=True)
    user_id = user_of(caller, body.user_id) or body.user_id
    asked = RecallMemories.model_validate({"tenant": caller.tenant, "user_id": user_id, **fields})
    return await gateway.bus.ask(asked, FactsRecalled)


@router.post("/consolidate", responses=fails(404))
async def consolidate_memories(body: ConsolidateBody, gateway: GatewayDependency, caller: Admin) -> Consolidated:
    """Expire, merge and demote facts, as happens by itself every hour; with `dry_run` say only what would be done."""
    user_id = user_of(caller, body.user_id)
    asked = ConsolidateMemories(tenant=caller.tenant, user_id=user_id, dry_run=body.dry_run, by=caller.name)
    return await gateway.bus.ask(asked, Consolidated)


@router.post("/summarize", status_code=202, response_model=Accepted, responses=fails(404, 409, 413, 429))
async def summarize_memories(
    *,
    body: SummarizeBody,
    request: Request,
    gateway: GatewayDependency,
    caller: Admin,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Submit the job that has one fact written for several that belong together, of what is remembered of a user.

    Its `memory.saved` says what became of each summary, and by which run it is undone.
    """
    job = SubmitJob(
        tenant=caller.tenant,
        agent=body.agent,
        input=SUMMARY_INPUT,
        job_id=ids.new_id("summary"),
        user_id=user_of(caller, body.user_id) or body.user_id,
        options=JobOptions(lane="batch", tags=(MEMORY_TAG,)),
        summarize=Summarizing(dry_run=body.dry_run),
    )
    told = request.state.caller
    job_id = await submit(gateway, job, own_id=False, key=idempotency_key, caller=told, by=caller)
    return await current(gateway, caller, job_id, wait_s=None, fresh=idempotency_key is None)


@router.post("/consolidations/{run_id}/undo", responses=fails())
async def undo_consolidation(
    run_id: Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")], gateway: GatewayDependency, caller: Admin
) -> ConsolidationUndone:
    """Bring back what one consolidation took away; what was changed since stays as it is."""
    asked = UndoConsolidation(tenant=caller.tenant, run_id=run_id, by=caller.name)
    return await gateway.bus.ask(asked, ConsolidationUndone)


async def _read(gateway: Gateway, caller: Caller, wanted: Versions) -> FactPage:
    # A key of one user finds no other's.
    asked = ListMemories(
        tenant=caller.tenant,
        user_id=caller.user_id,
        fact_ids=(wanted.fact_id,),
        states=wanted.states,
        limit=wanted.limit,
        cursor=wanted.cursor,
    )
    return await gateway.bus.ask(asked, FactPage)


FactRoutes("memory", "a memory", _read).add_to(router)
