"""Sessions: conversations of which each job is a turn."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from wayline.contracts.base import Usd
from wayline.contracts.errors import NotFound
from wayline.contracts.jobs import JobView
from wayline.contracts.sessions import (
    TURNS_PAGE_MAX,
    DeleteSession,
    GetSession,
    ListSessions,
    Session,
    SessionDeleted,
    SessionPage,
    SessionTurns,
)
from wayline.contracts.traces import CostTable, GetSessionCosts, JobPage, ListJobs
from wayline.contracts.working_context import WorkingContext
from wayline.gateway.handlers.shared.deleting import was_there
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.shared.own_jobs import is_own, require_own_session
from wayline.gateway.handlers.shared.read_job import read_job
from wayline.gateway.openapi import fails
from wayline.gateway.paging import Paged
from wayline.gateway.parameters import Cursor
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.jobs import linked
from wayline.gateway.strict_json import StrictRoute
from wayline.journal import JobLog, fold

TURNS_LOOKED_AT = 20
"""From the newest on, for one that has begun: others wait, or have handed their words over."""

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=StrictRoute)

SessionPath: TypeAlias = Annotated[str, Path(min_length=1, max_length=128, pattern=ONE_LINE, examples=["s-1"])]


class TurnView(BaseModel):
    """A job as a turn of its session."""

    number: int
    after: str | None = Field(description="The job before it; null: the first.")
    job: JobView


class SessionView(Session, Paged):
    """A session with a page of its turns, newest first."""

    busy_with: str | None = Field(description="The first job of it that has not ended; null: it is idle.")
    page: tuple[TurnView, ...]
    context: WorkingContext = Field(
        description="What it is about: the entities that its tools declared, and its tools, as its last job knows them."
    )
    cost_usd: Usd | None = Field(
        description="What its jobs cost by now, without those that they started; null: the price of a call is unknown."
    )
    cache_read_share: float | None = Field(
        description="Input tokens of its jobs that came from a prompt cache; null: there were none."
    )


@router.get("", responses=fails(400))
async def list_sessions(
    *,
    gateway: GatewayDependency,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Cursor = None,
    agent: Annotated[str | None, Query(max_length=64, pattern=ONE_LINE)] = None,
    user_id: Annotated[str | None, Query(max_length=128, pattern=ONE_LINE)] = None,
) -> SessionPage:
    """Page through the sessions, the last used first."""
    asked = ListSessions(
        tenant=caller.tenant, limit=limit, cursor=cursor, agent=agent, user_id=acting_as(caller, user_id)
    )
    return await gateway.bus.ask(asked, SessionPage)


@router.get("/{session_id:path}", responses=fails(404))
async def get_session(
    *,
    session_id: SessionPath,
    gateway: GatewayDependency,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=TURNS_PAGE_MAX)] = 50,
    cursor: Annotated[
        str | None, Query(pattern=r"^[1-9][0-9]{0,9}$", description="`next_cursor` of the page before.")
    ] = None,
) -> SessionView:
    """Return a session and its turns, newest first: each job with its status, its cost and what its caches saved."""
    asked = GetSession(tenant=caller.tenant, session_id=session_id, limit=limit, before=int(cursor) if cursor else None)
    found = await gateway.bus.ask(asked, SessionTurns)
    if not is_own(caller, found.user_id):
        raise NotFound("session", session_id)
    jobs = await _jobs(gateway, caller.tenant, [turn.job_id for turn in found.page])
    page = tuple(TurnView(number=turn.number, after=turn.after, job=jobs[turn.job_id]) for turn in found.page)
    shown: dict[str, Any] = {
        "page": page,
        "next_cursor": None if found.next_before is None else str(found.next_before),
        "context": await _context(gateway, caller.tenant, found.tail_job),
        **await _costs(gateway, caller.tenant, found),
    }
    return SessionView.model_validate({**found.model_dump(exclude={"page", "next_before"}), **shown})


async def _costs(gateway: Gateway, tenant: str, session: Session) -> dict[str, Any]:
    """Return what a session cost, as far as tracing has read."""
    asked = GetSessionCosts(tenant=tenant, session_id=session.session_id, since=session.created_at)
    total = (await gateway.bus.ask(asked, CostTable)).total
    if total is None:
        return {"cost_usd": Decimal(0), "cache_read_share": None}
    cost_usd = None if total.calls_unknown else total.cost_usd
    return {"cost_usd": cost_usd, "cache_read_share": total.cache_read_share}


async def _context(gateway: Gateway, tenant: str, job_id: str | None) -> WorkingContext:
    """Return what the newest of a session's last jobs knows that has called a model."""
    for _ in range(TURNS_LOOKED_AT):
        if job_id is None:
            break
        job = fold([event async for event in JobLog(gateway.bus, tenant, job_id).read()])
        if job.model.asked is not None:
            return job.working_context
        job_id = job.session.turn.after if job.session.turn else None
    return WorkingContext()


async def _jobs(gateway: Gateway, tenant: str, job_ids: list[str]) -> dict[str, JobView]:
    """Return jobs as tracing has them, and from their logs those that it has not seen yet."""
    if not job_ids:
        return {}
    found: dict[str, JobView] = {}
    asked = ListJobs(tenant=tenant, limit=len(job_ids), job_ids=tuple(job_ids))
    while True:
        page = await gateway.bus.ask(asked, JobPage)
        found |= {job.job_id: linked(job) for job in page.jobs}
        if page.next_cursor is None:
            break
        asked = asked.model_copy(update={"cursor": page.next_cursor})
    for job_id in job_ids:
        if job_id not in found:
            found[job_id] = (await read_job(gateway, tenant, job_id)).in_list()
    return found


@router.delete("/{session_id:path}", responses=fails(404, 409))
async def delete_session(session_id: SessionPath, gateway: GatewayDependency, caller: Writer) -> SessionDeleted:
    """Forget a session: its next job begins a new conversation. The logs of its jobs stay until they expire.

    409 while a job of it has not ended.
    """
    await require_own_session(gateway, caller, session_id)
    return was_there(
        await gateway.bus.ask(DeleteSession(tenant=caller.tenant, session_id=session_id), SessionDeleted),
        "session",
        session_id,
    )
