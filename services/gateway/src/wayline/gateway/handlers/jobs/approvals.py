"""Approvals: what waits for a person, across all jobs, and the decision on one tool call."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query

from wayline.contracts.errors import NotFound
from wayline.contracts.events import ApprovalRequested
from wayline.contracts.ids import JobId
from wayline.contracts.jobs import TERMINAL, DecideApproval, JobView
from wayline.contracts.traces import JobPage, ListJobs
from wayline.gateway.errors import ArgumentsRefused, AskedOtherwise, DecidedOtherwise, JobEnded, NotAsked
from wayline.gateway.handlers.shared.auditing import note_change
from wayline.gateway.handlers.shared.dependencies import Approver, Gateway, GatewayDependency, Reader
from wayline.gateway.handlers.shared.own_jobs import OwnJobPath, is_own
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.parameters import Cursor
from wayline.gateway.shapes.approvals import ApprovalBody, Decided, Wait, WaitPage
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.job_query import IDS_MAX, Moment
from wayline.gateway.shapes.jobs import Signalled, links
from wayline.gateway.strict_json import StrictRoute
from wayline.journal import Job, JobLog, fold

router = APIRouter(prefix="/v1", tags=["approvals"], route_class=StrictRoute)

EVER = datetime(1970, 1, 1, tzinfo=UTC)


@router.get("/approvals", responses=fails(400))
async def list_approvals(
    *,
    gateway: GatewayDependency,
    caller: Reader,
    limit: Annotated[int, Query(ge=1, le=200, description="Jobs on a page; each may wait for several decisions.")] = 50,
    cursor: Cursor = None,
    job_id: Annotated[
        list[JobId], Query(max_length=IDS_MAX, description="Only what these jobs wait for. Repeat it for each.")
    ] = [],  # noqa: B006 - FastAPI copies it for each request
    sort: Annotated[
        Literal["newest", "oldest"], Query(description="By when the jobs were accepted; without `decided`.")
    ] = "newest",
    decided: Annotated[bool, Query(description="What was decided, and by whom, in the place of what waits.")] = False,
    since: Annotated[
        Moment | None, Query(description="With `decided`: only then or later; without a time zone it is UTC.")
    ] = None,
) -> WaitPage:
    """Page through everything that waits for a person's decision: approvals, and tool calls of unknown outcome.

    With `decided=true` through the jobs on which people have decided: what, when, and with which key.
    """
    asked = ListJobs(tenant=caller.tenant, limit=limit, cursor=cursor, job_ids=tuple(job_id) or None)
    if decided:
        return await _decided_page(gateway, caller, asked, since or EVER)
    asked = asked.model_copy(update={"sort": sort, "waiting_for": ("approval", "needs_decision")})
    page = await gateway.bus.ask(asked, JobPage)
    waits = tuple(wait for job in page.jobs if is_own(caller, job.user_id) for wait in _waits(job))
    return WaitPage(approvals=waits, next_cursor=page.next_cursor)


async def _decided_page(gateway: Gateway, caller: Caller, asked: ListJobs, since: datetime) -> WaitPage:
    """Return what people decided since a moment, of the jobs of one page."""
    page = await gateway.bus.ask(asked.model_copy(update={"decided_since": since}), JobPage)
    shown = ("job_id", "agent", "user_id", "session_id", "input")
    decided = tuple(
        Decided(**one.model_dump(), **{name: getattr(job, name) for name in shown})
        for job in page.jobs
        if is_own(caller, job.user_id)
        for one in reversed(job.decisions)
        if one.decided_at >= since
    )
    return WaitPage(approvals=(), decided=decided, next_cursor=page.next_cursor)


def _waits(job: JobView) -> list[Wait]:
    """Return every decision that a parked job waits for."""
    waiting = job.waiting_for
    if waiting is None:
        return []
    shown = ("job_id", "agent", "user_id", "session_id", "input")
    of_job: dict[str, Any] = {name: getattr(job, name) for name in (*shown, "tainted_by")}
    found = [
        Wait(
            **of_job,
            why="approval" if one.input_schema is None else "input",
            id=one.approval_id,
            tool=one.tool,
            arguments=one.arguments,
            reason=one.reason,
            input_schema=one.input_schema,
            asked_at=one.asked_at,
            cause=one.why,
            hash=one.hash or None,
            effect=one.effect,
            description=one.description,
            program=one.program,
            given=one.given,
            expires_at=one.expires_at,
            decide=f"/v1/jobs/{job.job_id}/approvals/{one.approval_id}",
        )
        for one in waiting.approvals
    ]
    if waiting.why == "needs_decision":
        unknown = Wait(
            **of_job,
            why="needs_decision",
            id=waiting.wait_id,
            tool=waiting.tool or "",
            arguments=waiting.arguments or {},
            reason=waiting.question,
            expires_at=waiting.expires_at,
            decide=f"/v1/jobs/{job.job_id}/answers/{waiting.wait_id}",
        )
        found.insert(0, unknown)
    return found


@router.post("/jobs/{job_id}/approvals/{approval_id}", status_code=202, responses=fails(404, 409, 413, 422, 429))
async def decide_approval(
    job_id: OwnJobPath,
    approval_id: Annotated[str, Path(min_length=1, max_length=200, pattern=ONE_LINE)],
    body: ApprovalBody,
    gateway: GatewayDependency,
    caller: Approver,
) -> Signalled:
    """Approve a tool call, with its arguments or with others, or deny it with a reason that the model reads.

    Where the tool's server asks for input, `arguments` are the answer, and to deny is to decline to answer.

    202: the decision is stored. Of several the first counts, which the job's `approval.decided` event names; another
    one after it is a 409.
    """
    job, heard = await _read_state(gateway, caller.tenant, job_id)
    asked = next((one for one in job.tools.pending if one.approval_id == approval_id), None)
    if asked is None:
        raise NotAsked(job_id=job_id, approval_id=approval_id)
    if body.hash is not None and body.hash != asked.hash:
        raise AskedOtherwise(approval_id=approval_id, now=asked.hash)
    note_change(detail=body.decision)
    if body.decision == "approve":
        _check_arguments(job, asked, body.arguments)
    decided = DecideApproval(
        tenant=caller.tenant,
        job_id=job_id,
        approval_id=approval_id,
        decision=body.decision,
        **({"hash": body.hash} if body.hash is not None else {}),
        arguments=body.arguments,
        reason=body.reason,
        by=caller.name,
    )
    if (first := await _first_decision(gateway, job, asked, decided, after=heard)) is None:
        await gateway.signals.send(decided)
    elif first.model_copy(update={"by": decided.by, "hash": decided.hash}) != decided:
        raise DecidedOtherwise(decision_id=approval_id)
    return Signalled(job_id=job_id, signal="approval", links=links(job_id))


async def _first_decision(
    gateway: Gateway, job: Job, asked: ApprovalRequested, decided: DecideApproval, *, after: int
) -> DecideApproval | None:
    """Return the decision that was stored first and that the job has not heard yet; one that cannot count is none."""
    async with aclosing(gateway.signals.unheard(DecideApproval, decided.tenant, decided.job_id, after=after)) as told:
        async for one in told:
            if (
                one.approval_id == asked.approval_id
                and one.hash in (None, asked.hash)
                and (one.decision == "deny" or _arguments_problem(job, asked, one.arguments) is None)
            ):
                return one
    return None


async def _read_state(gateway: Gateway, tenant: str, job_id: str) -> tuple[Job, int]:
    """Return a job that has not ended, folded from its log, and up to where it has heard what it was told.

    Raises NotFound or JobEnded.
    """
    log = JobLog(gateway.bus, tenant, job_id)
    head = await log.last()
    job = fold([event async for event in log.read()])
    if not job.job_id and await gateway.submissions.queued(tenant, job_id) is None:
        raise NotFound("job", job_id)
    if job.life.status in TERMINAL:
        raise JobEnded(job_id=job_id)
    return job, head.signals_seen if head else 0


def _check_arguments(job: Job, asked: ApprovalRequested, arguments: dict[str, Any] | None) -> None:
    """Pass for arguments that the tool takes, or an answer that its server takes. Raises ArgumentsRefused."""
    if (problem := _arguments_problem(job, asked, arguments)) is not None:
        raise ArgumentsRefused(tool=asked.tool, problem=problem)


def _arguments_problem(job: Job, asked: ApprovalRequested, arguments: dict[str, Any] | None) -> str | None:
    if arguments is None and asked.input is None:
        return None
    # Late: few requests need it, and it loads the schema library.
    from wayline.llm.structured import value_problem

    return value_problem(job.tools.decision_schema(asked), arguments or {})
