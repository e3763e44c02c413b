"""A past job as a file, and as the beginning of another."""

from __future__ import annotations

from typing import Any

import structlog
from fastapi import APIRouter, Request
from fastapi.responses import Response

from wayline.contracts import ids
from wayline.contracts.errors import Conflict
from wayline.contracts.jobs import Fork, JobView, SubmitJob
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey, current
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.shared.own_jobs import OwnJobPath
from wayline.gateway.handlers.shared.read_job import find_log
from wayline.gateway.handlers.shared.submit_job import submit
from wayline.gateway.openapi import fails
from wayline.gateway.parameters import Wait
from wayline.gateway.shapes.jobs import Accepted
from wayline.gateway.shapes.time_travel import ExportedJob, ForkBody
from wayline.gateway.strict_json import StrictRoute
from wayline.journal import History, HistoryLost, JobLog, branch, export_job, pinned_end, read_history

log = structlog.get_logger()

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)


@router.get("/{job_id}/export", responses=fails(404, 409))
async def get_export(job_id: OwnJobPath, gateway: GatewayDependency, caller: Reader) -> ExportedJob:
    """Return a job as one self-contained file: its log so far, what its session had said before, its agent and models.

    `wayline jobs replay` and `wayline test` read it.
    """
    values = await read_values(gateway, caller.tenant, job_id)
    return ExportedJob.model_validate(export_job(values, await _history(gateway, caller.tenant, values)))


@router.post(
    "/{job_id}/fork",
    status_code=202,
    response_model=Accepted,
    responses={200: {"model": JobView, "description": "It has ended"}, **fails(404, 409, 413, 429)},
)
async def fork_job(
    *,
    job_id: OwnJobPath,
    body: ForkBody,
    request: Request,
    gateway: GatewayDependency,
    caller: Writer,
    idempotency_key: IdempotencyKey = None,
    wait: Wait = None,
) -> Response:
    """Begin a job with what another one was told and did until some event, under today's limits and its own budget.

    Nothing that they share is done or paid for again. Without `after` a failed job goes on before the step that failed.
    """
    if wait:
        gateway.streams.require_room(caller)
    values = await read_values(gateway, caller.tenant, job_id)
    changes = body.model_dump(include={"after", "prompt", "arguments", "tool_result", "without_memory"})
    job = forked(values, Fork(job_id=job_id, **changes), tenant=caller.tenant, body=body)
    job = job.model_copy(update={"user_id": acting_as(caller, job.user_id)})
    own_id = job.job_id is not None
    job = job if own_id else job.model_copy(update={"job_id": ids.new_id("job")})
    fork_id = await submit(gateway, job, own_id=own_id, key=idempotency_key, caller=request.state.caller, by=caller)
    repeatable = own_id or idempotency_key is not None
    return await current(gateway, caller, fork_id, wait_s=wait, fresh=not repeatable)


async def read_values(gateway: Gateway, tenant: str, job_id: str) -> list[dict[str, Any]]:
    """Read a job's whole log so far as decoded JSON. Raises NotFound, or Conflict while it is queued."""
    head = await find_log(gateway, tenant, job_id)
    if head is None:
        raise Conflict(f"job {job_id!r} is queued and has no log yet: try again once it runs", code="no_log_yet")
    return [value async for value in JobLog(gateway.bus, tenant, job_id).values(head.sequence)]


async def _history(gateway: Gateway, tenant: str, values: list[dict[str, Any]]) -> History | None:
    """Return what a job's session had said before it; None: nothing, or it cannot be read any more."""
    end = pinned_end(values)
    try:
        return None if end is None else await read_history(gateway.bus, tenant, end)
    except HistoryLost as error:
        log.info("a job is exported without its history", job_id=values[0]["job_id"], error=str(error))
        return None


def forked(values: list[dict[str, Any]], fork: Fork, *, tenant: str, body: ForkBody) -> SubmitJob:
    """Return the submission of a fork: its origin's, with what is different. Raises ForkRefused."""
    submitted = branch(values, fork).submitted.job
    changed = {"model": body.model, "budget_usd": body.budget_usd, "max_steps": body.max_steps}
    options = {name: value for name, value in changed.items() if value is not None}
    job = SubmitJob(
        tenant=tenant,
        agent=submitted.agent,
        input=submitted.input if body.input is None else body.input,
        job_id=body.job_id,
        history=submitted.history,
        user_id=submitted.user_id,
        options=submitted.options.model_copy(update=options),
        fork=fork,
    )
    branch(values, fork, job.parts())
    return job
