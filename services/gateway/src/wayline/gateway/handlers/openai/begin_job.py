"""Begin the job of a request, or find the one that the same request has begun a moment ago."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from fastapi import Request

from wayline.contracts import ids
from wayline.contracts.errors import NotFound
from wayline.contracts.jobs import JobView, Status, SubmitJob
from wayline.gateway.adapters.resent_requests import RequestId
from wayline.gateway.handlers.shared.dependencies import Gateway
from wayline.gateway.handlers.shared.read_job import read_job
from wayline.gateway.handlers.shared.submit_job import submit
from wayline.gateway.keys import Caller

RETRIES: Final = "x-stainless-retry-count"
"""OpenAI's clients count in it how often they have sent a request before."""
CLIENT_LEFT: Final = "its client has left"
"""Why a job was cancelled whose client closed the connection."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The job of a request."""

    job_id: str
    request: RequestId | None
    """As the same request is known again; None: an Idempotency-Key says what it is."""
    part: int = 1
    """Of a job whose client runs tools: which part of it the request asks for."""


async def begin_job(
    gateway: Gateway,
    request: Request,
    caller: Caller,
    job: SubmitJob,
    *,
    idempotency_key: str | None,
    opens_session: bool = False,
) -> Begun:
    """Submit the job of a request. One that its client sends again goes on with the job that it has begun.

    `opens_session`: it begins a session of its own, which has the job's name: the same job, the same session.

    Raises what `submit` raises.
    """
    traced = request.state.caller
    if idempotency_key is not None:
        # Derived, so that the same key has the same session.
        named = sha256(f"{caller.key_id}/{idempotency_key}".encode()).hexdigest()[:24]
        fresh = _named(job, ids.new_id("job"), session=named if opens_session else None)
        return Begun(
            await submit(gateway, fresh, own_id=False, key=idempotency_key, caller=traced, by=caller, door="openai"),
            None,
        )
    sent = await request_id(request, caller)
    known = await _begun_before(gateway, sent) if _is_resent(request) else None
    job_id = known or ids.new_id("job")
    job = _named(job, job_id, session=job_id if opens_session else None)
    # Before it is submitted: after a crash in between the same request submits the same job.
    await gateway.resent_requests.note(sent, job_id)
    return Begun(await submit(gateway, job, own_id=True, key=None, caller=traced, by=caller, door="openai"), sent)


def _named(job: SubmitJob, job_id: str, *, session: str | None) -> SubmitJob:
    return job.model_copy(update={"job_id": job_id, **({"session_id": f"resp-{session}"} if session else {})})


def _is_resent(request: Request) -> bool:
    count = request.headers.get(RETRIES, "0")
    return count.isdecimal() and int(count[:9]) > 0


async def request_id(request: Request, caller: Caller) -> RequestId:
    """Return as what a request is known when it comes again."""
    return RequestId(caller.tenant, caller.key_id, await _digest(request))


async def _digest(request: Request) -> str:
    hashed = sha256(request.url.path.encode() + b"\0")
    for name in ("x-wayline-session",):
        hashed.update(request.headers.get(name, "").encode() + b"\0")
    hashed.update(await request.body())
    return hashed.hexdigest()


async def _begun_before(gateway: Gateway, sent: RequestId) -> str | None:
    """Return the job that a request has begun, unless it was cancelled because the client had left."""
    job_id = await gateway.resent_requests.job_of(sent)
    if job_id is None:
        return None
    try:
        job = await read_job(gateway, sent.tenant, job_id)
    except NotFound:
        # It was noted and not submitted: now it is, under the same id.
        return job_id
    return None if was_abandoned(job) else job_id


def was_abandoned(job: JobView) -> bool:
    """Return whether a job was cancelled because its client had left."""
    return job.status is Status.CANCELLED and job.reason == CLIENT_LEFT
