"""`/openai/v1/responses`: jobs as responses, whole, streamed, in the background, and read again later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

from wayline.contracts import ids
from wayline.contracts.errors import NotFound, Retry
from wayline.contracts.events import JobSubmitted
from wayline.contracts.jobs import Cancel, JobView, Signal, Status
from wayline.gateway.errors import UnsupportedParameter
from wayline.gateway.event_streams import UNBUFFERED
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey
from wayline.gateway.handlers.openai.abandoned_jobs import AbandonedJobsDependency
from wayline.gateway.handlers.openai.begin_job import begin_job
from wayline.gateway.handlers.openai.chat import EVENT_STREAM, KEEP_ALIVE_S, JobStream, headers_of
from wayline.gateway.handlers.openai.followed_job import FollowedJob
from wayline.gateway.handlers.openai.sent_documents import store_files
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.shared.own_jobs import require_own_job, require_own_session
from wayline.gateway.handlers.shared.read_job import FOR_A_PERSON, has_ended, read_job
from wayline.gateway.keys import Caller
from wayline.gateway.openai.chat_answer import KEEP_ALIVE
from wayline.gateway.openai.error_shape import error_of
from wayline.gateway.openai.field_rules import refuse_unsupported
from wayline.gateway.openai.responses_answer import PREFIX, closing, error_event, opening, response, sse
from wayline.gateway.openai.responses_body import ConversationId, ResponsesBody
from wayline.gateway.openai.responses_to_job import begins_session, responses_to_job
from wayline.gateway.openai.waiting_words import waiting_sentence
from wayline.gateway.openapi import fails_as_openai
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/openai/v1", tags=["openai"], route_class=StrictRoute)

SEQUENCE_MAX: Final = 2**31
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The response, or its events.",
        "content": {"application/json": {"schema": {"type": "object"}}, EVENT_STREAM: {"schema": {"type": "string"}}},
    }
}
ResponsePath = Annotated[str, Path(pattern=r"^resp_[A-Za-z0-9_-]{1,64}$", examples=["resp_job_1f2e3d4c5b6a79880011"])]


@router.post(
    "/responses", response_class=Response, responses={**_ANSWERS, **fails_as_openai(400, 404, 409, 413, 429, 504)}
)
async def create_response(
    *,
    body: ResponsesBody,
    request: Request,
    gateway: GatewayDependency,
    caller: Writer,
    abandoned: AbandonedJobsDependency,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Have an agent answer. Each response is a turn of a session, which `previous_response_id` or `conversation` names.

    Without either it begins a session of its own, unless its input is a whole conversation.
    """
    refuse_unsupported(body.model_extra or {}, also=("stream_options",))
    if body.store is False:
        raise UnsupportedParameter("store", "a job's log is kept: leave it out")
    user_id = acting_as(caller, body.user)
    session_id = await _session_of(gateway, caller, body)
    await require_own_session(gateway, caller, session_id)
    opens = session_id is None and begins_session(body)
    wanted = responses_to_job(body, tenant=caller.tenant, user_id=user_id, session_id="new" if opens else session_id)
    if body.stream or not body.background:
        gateway.streams.require_room(caller)
    await store_files(gateway, caller.tenant, wanted.files, user_id=user_id)
    begun = await begin_job(gateway, request, caller, wanted.job, idempotency_key=idempotency_key, opens_session=opens)
    more = {"background": bool(body.background), "previous": body.previous_response_id, "metadata": body.metadata}
    headers = headers_of(ids.trace_id(caller.tenant, begun.job_id), begun.job_id)
    followed = FollowedJob(gateway, caller.tenant, begun.job_id)
    if body.stream:
        told = _events(gateway, caller, followed, after=-1)
        stream = {"headers": {**UNBUFFERED, **headers}, "media_type": EVENT_STREAM}
        if body.background:
            return StreamingResponse(told, **stream)
        return JobStream(told, abandoned, caller, begun, **stream)
    if body.background:
        queued = JobView(job_id=begun.job_id, status=Status.QUEUED, agent=body.model)
        return _json(response(queued, created=datetime.now(UTC), **more), headers)
    job = await abandoned.outcome(request, caller, begun, followed)
    if job is None:
        return Response(status_code=499)
    if job.cost_usd is not None:
        headers["X-Wayline-Cost"] = f"{job.cost_usd:f}"
    waits = waiting_sentence(job, base=gateway.settings.reached_at) if followed.is_parked else None
    return _json(response(job, created=job.created_at or datetime.now(UTC), waits=waits, **more), headers)


@router.get("/responses/{response_id}", response_class=Response, responses={**_ANSWERS, **fails_as_openai(404)})
async def get_response(
    *,
    response_id: ResponsePath,
    gateway: GatewayDependency,
    caller: Reader,
    stream: Annotated[bool, Query(description="Its events, from the first or from `starting_after` on.")] = False,
    starting_after: Annotated[
        int, Query(ge=-1, le=SEQUENCE_MAX, description="Only events past this `sequence_number`.")
    ] = -1,
) -> Response:
    """Return how far a response is; with `stream=true` its events, as they were or would have been sent."""
    job_id = await _own_job(gateway, caller, response_id)
    job = await read_job(gateway, caller.tenant, job_id)
    if stream:
        gateway.streams.require_room(caller)
        followed = FollowedJob(gateway, caller.tenant, job_id)
        told = _events(gateway, caller, followed, after=starting_after)
        headers = {**UNBUFFERED, **headers_of(job.trace_id, job_id)}
        return StreamingResponse(told, headers=headers, media_type=EVENT_STREAM)
    return _json(_as_it_is(gateway, job), headers_of(job.trace_id, job_id))


@router.post(
    "/responses/{response_id}/cancel", response_class=Response, responses={**_ANSWERS, **fails_as_openai(404, 429)}
)
async def cancel_response(response_id: ResponsePath, gateway: GatewayDependency, caller: Writer) -> Response:
    """Ask the job of a response to stop, and return how far it is; one that has ended stays as it is."""
    job_id = await _own_job(gateway, caller, response_id)
    job = await read_job(gateway, caller.tenant, job_id)
    if not has_ended(job):
        cancel = Cancel(reason="its client cancelled the response", by=caller.name)
        await gateway.signals.send(Signal(tenant=caller.tenant, job_id=job_id, signal=cancel))
    return _json(_as_it_is(gateway, job), headers_of(job.trace_id, job_id))


async def _session_of(gateway: Gateway, caller: Caller, body: ResponsesBody) -> str | None:
    """Return the session that a request names. Raises NotFound and UnsupportedParameter."""
    if body.conversation is not None:
        if body.previous_response_id is not None:
            raise UnsupportedParameter("conversation", "name it or previous_response_id, not both")
        return body.conversation.id if isinstance(body.conversation, ConversationId) else body.conversation
    if body.previous_response_id is None:
        return None
    job_id = await _own_job(gateway, caller, body.previous_response_id)
    previous = await read_job(gateway, caller.tenant, job_id)
    if previous.session_id is None:
        why = "it has brought its conversation along, and is of no session: send the conversation again"
        raise UnsupportedParameter("previous_response_id", why)
    return previous.session_id


async def _own_job(gateway: Gateway, caller: Caller, response_id: str) -> str:
    job_id = response_id.removeprefix(PREFIX)
    try:
        await require_own_job(gateway, caller, job_id)
        await read_job(gateway, caller.tenant, job_id)
    except NotFound:
        raise NotFound("response", response_id) from None
    return job_id


def _as_it_is(gateway: Gateway, job: JobView) -> dict[str, Any]:
    waiting = job.waiting_for
    parked = waiting is not None and waiting.why in FOR_A_PERSON
    waits = waiting_sentence(job, base=gateway.settings.reached_at) if parked else None
    return response(job, created=job.created_at or datetime.now(UTC), waits=waits)


def _json(made: dict[str, Any], headers: dict[str, str]) -> Response:
    return Response(orjson.dumps(made), headers=headers, media_type="application/json")


async def _events(gateway: Gateway, caller: Caller, followed: FollowedJob, *, after: int) -> AsyncIterator[bytes]:
    """Yield a response's events past one of them: numbered without a gap, and the same whenever they are asked for."""
    last = time.monotonic()
    try:
        gateway.streams.require_room(caller)
    except Retry as error:
        yield sse(error_event(error_of(error.problem()), number=after + 1))
        return
    with gateway.streams.follower(caller) as follower:
        try:
            async with aclosing(followed.news()) as news:
                async for item in news:
                    if isinstance(item, JobSubmitted):
                        begun = JobView(job_id=followed.job_id, status=Status.RUNNING, agent=item.job.agent)
                        for event in opening(begun, created=item.at):
                            if event["sequence_number"] > after:
                                yield sse(event)
                    if item is None or time.monotonic() - last >= KEEP_ALIVE_S:
                        last = time.monotonic()
                        yield KEEP_ALIVE
        except asyncio.CancelledError:
            if not follower.absorb_stop():
                raise
            # Nothing of the answer was sent: its client comes back for what follows the opening.
            return
    job = followed.outcome
    assert job is not None
    waits = waiting_sentence(job, base=gateway.settings.reached_at) if followed.is_parked else None
    for event in closing(job, created=job.created_at or datetime.now(UTC), waits=waits):
        if event["sequence_number"] > after:
            yield sse(event)
