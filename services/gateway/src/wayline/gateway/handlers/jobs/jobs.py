"""Jobs: submit, look, steer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Annotated, TypeAlias

import structlog
from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, StringConstraints

from wayline.contracts import ids
from wayline.contracts.errors import NotFound, Retry
from wayline.contracts.jobs import Answer, Cancel, JobView, PlanJob, Planned, RaiseBudget, Signal, Status, SubmitJob
from wayline.contracts.traces import JobPage
from wayline.gateway.errors import DecidedOtherwise, JobEnded, NotWaiting
from wayline.gateway.handlers.jobs.budget_limits import require_allowed
from wayline.gateway.handlers.shared.dependencies import (
    Decider,
    Gateway,
    GatewayDependency,
    Reader,
    Writer,
    acting_as,
)
from wayline.gateway.handlers.shared.find_jobs import find_jobs
from wayline.gateway.handlers.shared.own_jobs import OwnJobPath, require_own_session
from wayline.gateway.handlers.shared.read_job import (
    find_log,
    has_ended,
    read_job,
    read_notes,
    read_queue_place,
    wait_for_end,
)
from wayline.gateway.handlers.shared.submit_job import submit
from wayline.gateway.keys import Caller
from wayline.gateway.openapi import fails
from wayline.gateway.parameters import Wait
from wayline.gateway.shapes.body import ONE_LINE
from wayline.gateway.shapes.job_query import JobQuery
from wayline.gateway.shapes.jobs import (
    Accepted,
    AnswerBody,
    BudgetBody,
    CancelBody,
    Signalled,
    SubmitBody,
    linked,
    links,
)
from wayline.gateway.strict_json import StrictRoute
from wayline.journal import State
from wayline.store import PostgresUnavailable

log = structlog.get_logger()

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)

IdempotencyKey: TypeAlias = Annotated[
    Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[\x20-\x7e]+$")] | None,
    Header(description="The same key with the same body is the same job, for ever; with another body it is a 409."),
]


@router.post(
    "",
    status_code=202,
    response_model=Accepted,
    responses={
        200: {"model": JobView | Planned, "description": "It has ended, or was only planned"},
        **fails(404, 409, 413, 429),
    },
)
async def submit_job(
    *,
    body: SubmitBody,
    request: Request,
    gateway: GatewayDependency,
    caller: Writer,
    idempotency_key: IdempotencyKey = None,
    wait: Wait = None,
) -> Response:
    """Submit a job. 202 means that it is stored and will run; with `wait`, 200 is the finished job.

    What the router would refuse for its agent, its model or its files is refused here, with the same code.

    With `options.dry_run` nothing runs: 200 is the route it would take and what that is expected to cost.
    """
    given = {name: getattr(body, name) for name in SubmitBody.model_fields}
    job = SubmitJob(**{**given, "user_id": acting_as(caller, body.user_id)}, tenant=caller.tenant)
    await require_own_session(gateway, caller, job.session_id)
    if body.options.dry_run:
        return _answer(200, await gateway.bus.ask(PlanJob(tenant=caller.tenant, job=job), Planned))
    if wait:
        gateway.streams.require_room(caller)
    own_id = job.job_id is not None
    job = job if own_id else job.model_copy(update={"job_id": ids.new_id("job")})
    job_id = await submit(gateway, job, own_id=own_id, key=idempotency_key, caller=request.state.caller, by=caller)
    repeatable = own_id or idempotency_key is not None
    return await current(gateway, caller, job_id, wait_s=wait, fresh=not repeatable)


LOOK_WITHIN_S = 3.0
"""How long beyond its wait an answer may take: where the bus is away, 202 says what is known."""


async def current(gateway: Gateway, caller: Caller, job_id: str, *, wait_s: float | None, fresh: bool) -> Response:
    """Answer 200 with the job once it has ended, else 202; a new job is not read without a wait."""
    status = Status.QUEUED
    if wait_s or not fresh:
        try:
            async with asyncio.timeout((wait_s or 0) + LOOK_WITHIN_S):
                job = await _looked_at(gateway, caller, job_id, wait_s=wait_s)
        except (TimeoutError, Retry, NotFound, PostgresUnavailable) as error:
            # It is on the bus: an error would have the client send it again, as another job.
            log.warning("an accepted job cannot be looked at", job_id=job_id, error=str(error) or "no answer in time")
        else:
            if has_ended(job):
                return _answer(200, job)
            status = job.status
    accepted = Accepted(job_id=job_id, status=status, links=links(job_id))
    return _answer(202, accepted, Location=accepted.links["self"])


async def _looked_at(gateway: Gateway, caller: Caller, job_id: str, *, wait_s: float | None) -> JobView:
    """Return the job when it has ended, or as it is when the wait is over, or when this process stops."""
    ended = None
    if wait_s:
        with gateway.streams.follower(caller) as follower:
            try:
                wait_s = min(wait_s, gateway.settings.wait_max_s)
                ended = await wait_for_end(gateway, caller.tenant, job_id, wait_s=wait_s)
            except asyncio.CancelledError:
                if not follower.absorb_stop():
                    raise
    return ended or await read_job(gateway, caller.tenant, job_id)


@router.get("", responses=fails(400))
async def list_jobs(gateway: GatewayDependency, caller: Reader, query: Annotated[JobQuery, Query()]) -> JobPage:
    """Page through the jobs that meet all conditions, newest first unless `sort` says otherwise."""
    asked = query.asked(caller.tenant, user_id=acting_as(caller, query.user_id))
    page = await find_jobs(gateway, asked)
    return page.model_copy(update={"jobs": tuple(linked(job) for job in page.jobs)})


@router.get("/{job_id}", responses=fails(404))
async def get_job(job_id: OwnJobPath, gateway: GatewayDependency, caller: Reader) -> JobView:
    """Return where a job is: status, route, steps, usage, cost, and the answer once there is one.

    Of one that runs `progress` tells what it does now, of one that is queued `queue` tells its place.
    """
    job, noted = await asyncio.gather(
        read_job(gateway, caller.tenant, job_id), read_notes(gateway, caller.tenant, job_id)
    )
    if job.status is Status.QUEUED:
        noted["queue"] = await read_queue_place(gateway, caller.tenant, job_id)
    return job.model_copy(update=noted)


@router.post("/{job_id}/cancel", status_code=202, responses=fails(404, 409, 429))
async def cancel_job(
    job_id: OwnJobPath, gateway: GatewayDependency, caller: Writer, body: CancelBody | None = None
) -> Signalled:
    """Ask a job to stop. 202: the request is stored; the event `job.cancelled` follows when the job has stopped."""
    head = await find_log(gateway, caller.tenant, job_id)
    if head is not None and head.state == State.ENDED:
        raise JobEnded(job_id=job_id)
    await _signal(gateway, caller.tenant, job_id, Cancel(reason=body.reason if body else "", by=caller.name))
    return Signalled(job_id=job_id, signal="cancel", links=links(job_id))


@router.post("/{job_id}/answers/{decision_id}", status_code=202, responses=fails(404, 409, 413, 429))
async def answer_decision(
    job_id: OwnJobPath,
    decision_id: Annotated[str, Path(min_length=1, max_length=200, pattern=ONE_LINE)],
    body: AnswerBody,
    gateway: GatewayDependency,
    caller: Decider,
) -> Signalled:
    """Give a waiting job the outcome of a tool call that could not be learned, so that it can go on."""
    head = await find_log(gateway, caller.tenant, job_id)
    job = await read_job(gateway, caller.tenant, job_id)
    if has_ended(job):
        raise JobEnded(job_id=job_id)
    waiting = job.waiting_for
    if head is None or waiting is None or waiting.why != "needs_decision" or waiting.wait_id != decision_id:
        raise NotWaiting(job_id=job_id, decision_id=decision_id)
    answer = Answer(decision_id=decision_id, outcome=body.outcome, content=body.content, by=caller.name)
    if (first := await _first_answer(gateway, caller.tenant, job_id, decision_id, after=head.signals_seen)) is None:
        await _signal(gateway, caller.tenant, job_id, answer)
    elif first.model_copy(update={"by": answer.by}) != answer:
        raise DecidedOtherwise(decision_id=decision_id)
    return Signalled(job_id=job_id, signal="answer", links=links(job_id))


@router.post("/{job_id}/budget", status_code=202, responses=fails(403, 404, 409, 429))
async def change_budget(job_id: OwnJobPath, body: BudgetBody, gateway: GatewayDependency, caller: Writer) -> Signalled:
    """Change what a job may spend; one that is parked at its cap goes on, with the event `budget.raised`.

    More than its agent and the budgets for each job allow needs the scope `admin`.
    """
    head = await find_log(gateway, caller.tenant, job_id)
    if head is not None and head.state == State.ENDED:
        raise JobEnded(job_id=job_id)
    await require_allowed(gateway, caller, job_id, head, body.budget_usd)
    await _signal(gateway, caller.tenant, job_id, RaiseBudget(budget_usd=body.budget_usd, by=caller.name))
    return Signalled(job_id=job_id, signal="budget", links=links(job_id))


async def _first_answer(gateway: Gateway, tenant: str, job_id: str, decision_id: str, *, after: int) -> Answer | None:
    """Return the answer that was stored first and that the job has not heard yet."""
    async with aclosing(gateway.signals.unheard(Signal, tenant, job_id, after=after)) as told:
        async for one in told:
            if isinstance(one.signal, Answer) and one.signal.decision_id == decision_id:
                return one.signal
    return None


async def _signal(gateway: Gateway, tenant: str, job_id: str, signal: Cancel | Answer | RaiseBudget) -> None:
    await gateway.signals.send(Signal(tenant=tenant, job_id=job_id, signal=signal))


def _answer(status: int, body: BaseModel, **headers: str) -> Response:
    return Response(body.model_dump_json(), status_code=status, headers=headers, media_type="application/json")
