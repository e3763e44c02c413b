"""Memories: facts about users."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from wayline.contracts.errors import NotFound
from wayline.contracts.memory import (
    Consolidated,
    ConsolidateMemories,
    ConsolidationUndone,
    Fact,
    FactPage,
    FactsRecalled,
    FactsSaved,
    ListMemories,
    MemoriesForgotten,
    MemoryCategory,
    RecallMemories,
    SaveMemories,
    Tier,
    UndoConsolidation,
    WrittenBy,
)
from wayline.gateway.conditions import IfUnchanged
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey
from wayline.gateway.handlers.memory.facts import (
    VERSIONS_MAX,
    FactPath,
    States,
    changed,
    decided,
    forgotten,
    memory_of,
    save_key,
    tag_of,
    user_of,
)
from wayline.gateway.handlers.shared.changing import tagged
from wayline.gateway.handlers.shared.dependencies import (
    Admin,
    GatewayDependency,
    MemoryReleaser,
    Reader,
    Writer,
    acting_as,
)
from wayline.gateway.openapi import fails, tags
from wayline.gateway.parameters import Cursor
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.memories import ConsolidateBody, DecisionBody, FactChangeBody, RecallBody, SaveMemoriesBody
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


@router.post("/consolidations/{run_id}/undo", responses=fails())
async def undo_consolidation(
    run_id: Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")], gateway: GatewayDependency, caller: Admin
) -> ConsolidationUndone:
    """Bring back what one consolidation took away; what was changed since stays as it is."""
    asked = UndoConsolidation(tenant=caller.tenant, run_id=run_id, by=caller.name)
    return await gateway.bus.ask(asked, ConsolidationUndone)


@router.get("/{fact_id}", responses=tags(404))
async def get_memory(fact_id: FactPath, gateway: GatewayDependency, caller: Reader, response: Response) -> Fact:
    """Return a memory with where it is from."""
    found = await memory_of(gateway, caller, fact_id)
    return tagged(response, found, tag_of(found))


@router.get("/{fact_id}/versions", responses=fails(400, 404))
async def list_memory_versions(
    fact_id: FactPath,
    gateway: GatewayDependency,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=VERSIONS_MAX)] = VERSIONS_MAX,
    cursor: Cursor = None,
) -> FactPage:
    """Return what a memory was before, the newest version first."""
    states = ("active", "quarantined", "superseded", "expired", "rejected")
    asked = ListMemories(
        tenant=caller.tenant,
        user_id=caller.user_id,
        fact_ids=(fact_id,),
        states=states,
        limit=limit,
        cursor=cursor,
    )
    found = await gateway.bus.ask(asked, FactPage)
    if not found.facts and cursor is None:
        raise NotFound("memory", fact_id)
    return found


@router.patch("/{fact_id}", responses=tags(404, 409, 412, 413))
async def change_memory(
    *,
    fact_id: FactPath,
    body: FactChangeBody,
    gateway: GatewayDependency,
    caller: Writer,
    condition: IfUnchanged,
    response: Response,
) -> Fact:
    """Change a memory: a new version supersedes it."""
    fact = await changed(gateway, caller, lambda: memory_of(gateway, caller, fact_id), body, condition)
    return tagged(response, fact, tag_of(fact))


@router.post("/{fact_id}/release", responses=fails(404, 409))
async def release_memory(
    fact_id: FactPath, body: DecisionBody, gateway: GatewayDependency, caller: MemoryReleaser
) -> Fact:
    """Let a quarantined memory count from now on, as the word of the caller."""
    return await decided(gateway, caller, await memory_of(gateway, caller, fact_id), "release", body.reason)


@router.post("/{fact_id}/reject", responses=fails(404, 409))
async def reject_memory(
    fact_id: FactPath, body: DecisionBody, gateway: GatewayDependency, caller: MemoryReleaser
) -> Fact:
    """Refuse a quarantined memory for good."""
    return await decided(gateway, caller, await memory_of(gateway, caller, fact_id), "reject", body.reason)


@router.delete("/{fact_id}", responses=fails(404))
async def delete_memory(fact_id: FactPath, gateway: GatewayDependency, caller: Writer) -> MemoriesForgotten:
    """Delete a memory with all of its versions."""
    return await forgotten(gateway, caller, await memory_of(gateway, caller, fact_id))
