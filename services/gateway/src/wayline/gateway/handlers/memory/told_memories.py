"""What a job's model was told of what is remembered, and where each fact is from."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from wayline.contracts.events import MemoryInjected
from wayline.contracts.memory import Fact, FactPage, ListMemories
from wayline.gateway.handlers.memory.fact_routes import VERSIONS_MAX
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader
from wayline.gateway.handlers.shared.own_jobs import OwnJobPath
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.strict_json import StrictRoute
from wayline.journal import JobLog

router = APIRouter(prefix="/v1/jobs", tags=["memory"], route_class=StrictRoute)


class ToldFact(BaseModel):
    """A fact that a model was told."""

    fact_id: str
    version: int
    why: str = Field(description="`core`: who the user is; `fits`: it fits the input; `changed`: it was told before.")
    similarity: float
    seq: int = Field(description="Of the event `memory.injected`.")
    fact: Fact | None = Field(
        description="That version as it is stored: its quote, and what wrote it. null: it is forgotten."
    )


class ToldMemories(BaseModel):
    """What a job's model was told of what is remembered of its user."""

    job_id: str
    told: tuple[ToldFact, ...]
    gone: tuple[str, ...] = Field(description="Facts that it was told before and that do not count any more.")
    tokens: int = Field(description="Estimated, of all that was told.")


@router.get("/{job_id}/memories", responses=fails(404))
async def list_told_memories(job_id: OwnJobPath, gateway: GatewayDependency, caller: Reader) -> ToldMemories:
    """Return the remembered facts that a job's model was told, why, and which words of the user each rests on."""
    log = JobLog(gateway.bus, caller.tenant, job_id)
    events = [event async for event in log.read() if isinstance(event, MemoryInjected)]
    ids = {one.fact_id for event in events for one in event.facts}
    stored = {(fact.fact_id, fact.version): fact for fact in await _stored(gateway, caller, sorted(ids))}
    told = tuple(
        ToldFact(**one.model_dump(), seq=event.seq, fact=stored.get((one.fact_id, one.version)))
        for event in events
        for one in event.facts
    )
    gone = tuple(sorted({fact_id for event in events for fact_id in event.gone}))
    return ToldMemories(job_id=job_id, told=told, gone=gone, tokens=sum(event.tokens for event in events))


async def _stored(gateway: Gateway, caller: Caller, fact_ids: list[str]) -> tuple[Fact, ...]:
    if not fact_ids:
        return ()
    states = ("active", "quarantined", "superseded", "expired", "rejected")
    asked = ListMemories(tenant=caller.tenant, fact_ids=tuple(fact_ids), states=states, limit=5 * VERSIONS_MAX)
    return (await gateway.bus.ask(asked, FactPage)).facts
