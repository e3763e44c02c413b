"""From an HTTP request to a job on the bus: the same request twice is one job, also after a crash in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Literal

import structlog
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from wayline.chassis import Failpoint, reach
from wayline.contracts import headers as h
from wayline.contracts.errors import Reject, TenantFull, Unavailable
from wayline.contracts.jobs import SubmitJob, SubmittedBy
from wayline.gateway.errors import JobIdConflict, KeyReused, RateLimited, TooManyRunning
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.keys import Caller
from wayline.journal import JobLog
from wayline.store import PostgresUnavailable
from wayline.telemetry import JobTrace, names, remote

log = structlog.get_logger()

Door = Literal["key", "openai", "mcp"]
SUBMIT_WITHIN_S = 5.0
"""How long a submission is tried before its sender must try again: the sender waits for the answer."""
DUPLICATE_TRIES = 20
DUPLICATE_WAIT_S = 0.05
"""Together longer than the stream's duplicate window."""


async def submit(
    gateway: Gateway,
    job: SubmitJob,
    *,
    own_id: bool,
    key: str | None,
    caller: Mapping[str, str] | None,
    by: Caller | None = None,
    door: Door = "key",
) -> str:
    """Put a job on the bus unless it is there already, and return its id.

    `own_id`: the client chose the job's id. `by`: by whose rate of jobs it is counted, and whom its log names, with the
    `door`. Raises what the router refuses jobs with, TenantFull, RateLimited, TooManyRunning, SessionBusy,
    JobIdConflict, KeyReused, Full or Unavailable.
    """
    known = False
    if own_id:
        head = await JobLog(gateway.bus, job.tenant, str(job.job_id)).last()
        if head is not None and head.content_hash != job.content_hash():
            raise JobIdConflict(job_id=str(job.job_id))
        known = head is not None
    if not known:
        await _require_runnable(gateway, job, key, by=by)
    if own_id or key is not None:
        # Written down before it is published: after a crash in between the same request publishes the same id.
        held = await gateway.submissions.claim(job, key=key)
        if held.job_id != job.job_id and own_id:
            raise KeyReused(job_id=held.job_id)
        if held.content_hash != job.content_hash():
            raise JobIdConflict(job_id=held.job_id) if key is None else KeyReused(job_id=held.job_id)
        if held.accepted:
            return held.job_id
        job = job.model_copy(update={"job_id": held.job_id})
    if not known:
        told = SubmittedBy(how=door, name=by.name if by else None, key_id=(by.key_id or None) if by else None)
        await _publish(gateway, job, caller, told)
    try:
        await gateway.submissions.accepted(job, key=key)
    except PostgresUnavailable as error:
        # The bus has it, so it is accepted; only the few moments before its log exists are not known here.
        log.warning("a submission was not written down", job_id=job.job_id, error=str(error))
    return str(job.job_id)


async def _require_runnable(gateway: Gateway, job: SubmitJob, key: str | None, *, by: Caller | None) -> None:
    """Refuse a new job that the router would refuse; an already accepted one stays accepted."""
    try:
        await gateway.router.require_runnable(job)
        await gateway.router.require_room(job.tenant)
        await gateway.router.require_idle_session(job)
        await gateway.router.require_place(job, key_id=(by.key_id or None) if by else None)
        if by is not None and (buckets := by.buckets("jobs", user_id=job.user_id)):
            await gateway.rates.spend(job.tenant, buckets)
    except (Reject, TenantFull, TooManyRunning, RateLimited):
        if not await gateway.submissions.was_accepted(job, key=key):
            raise


async def _publish(gateway: Gateway, job: SubmitJob, caller: Mapping[str, str] | None, told: SubmittedBy) -> None:
    """Publish under a span in the job's own trace; the request and its caller are links."""
    theirs = remote(caller)
    here = trace.get_current_span().get_span_context()
    headers = {h.CALLER: caller[h.TRACEPARENT]} if caller and theirs else {}
    # In ASCII: a header takes no more.
    headers[h.SUBMITTED_BY] = json.dumps(told.model_dump(exclude_none=True))
    with gateway.telemetry.span(
        f"publish {job.subject_template}",
        SpanKind.PRODUCER,
        {
            names.MESSAGING_SYSTEM: "nats",
            names.MESSAGING_OPERATION: "publish",
            names.MESSAGING_OPERATION_TYPE: "send",
            names.MESSAGING_TEMPLATE: job.subject_template,
            names.MESSAGING_MESSAGE_ID: str(job.job_id),
            names.TENANT: job.tenant,
            names.JOB: str(job.job_id),
        },
        parent=JobTrace.of(job.tenant, str(job.job_id)).context(),
        links=tuple(link for link in (here, theirs) if link is not None and link.is_valid),
    ):
        reach(Failpoint.GATEWAY_SUBMIT_BEFORE)
        for _ in range(DUPLICATE_TRIES):
            ack = await gateway.bus.publish(job, msg_id=str(job.job_id), headers=headers, within_s=SUBMIT_WITHIN_S)
            if not ack.duplicate:
                reach(Failpoint.GATEWAY_SUBMIT_AFTER)
                return
            # The window is the whole stream's: another tenant's job of this id would hide ours. A repeat of our own
            # is harmless, because the router looks into the log.
            await asyncio.sleep(DUPLICATE_WAIT_S)
    raise Unavailable("the submit stream", detail="it takes every message of this id for a repeat")
