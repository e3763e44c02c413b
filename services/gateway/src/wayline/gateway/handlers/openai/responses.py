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
from wayline.contracts.events import Event
from wayline.contracts.forgetting import Forget, Forgetting
from wayline.contracts.jobs import Cancel, JobView, Signal, Status
from wayline.gateway.errors import UnsupportedParameter
from wayline.gateway.event_streams import UNBUFFERED
from wayline.gateway.handlers.jobs.forgetting import require_own_or_admin
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey
from wayline.gateway.handlers.openai.abandoned_jobs import AbandonedJobsDependency
from wayline.gateway.handlers.openai.begin_job import Begun, begin_job
from wayline.gateway.handlers.openai.chat import EVENT_STREAM, KEEP_ALIVE_S, JobStream, headers_of
from wayline.gateway.handlers.openai.continue_job import continue_job
from wayline.gateway.handlers.openai.earlier_responses import (
    own_response,
    previous_of,
    require_no_open_calls,
    session_of,
    told_before,
    with_named_items,
)
from wayline.gateway.handlers.openai.followed_job import FollowedJob
from wayline.gateway.handlers.openai.sent_documents import store_files
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Reader, Writer, acting_as
from wayline.gateway.handlers.shared.own_jobs import require_own_session
from wayline.gateway.handlers.shared.read_job import FOR_A_PERSON, has_ended
from wayline.gateway.keys import Caller
from wayline.gateway.openai.chat_answer import KEEP_ALIVE
from wayline.gateway.openai.error_shape import error_of
from wayline.gateway.openai.field_rules import refuse_unsupported
from wayline.gateway.openai.job_parts import JobPart
from wayline.gateway.openai.responses_answer import (
    closing,
    error_event,
    job_and_part,
    opening,
    response,
    response_id,
    sse,
)
from wayline.gateway.openai.responses_body import RESPONSE_ID, ResponsesBody
from wayline.gateway.openai.responses_to_job import begins_session, outputs_in, responses_to_job
from wayline.gateway.openai.waiting_words import waiting_sentence
from wayline.gateway.openapi import fails_as_openai
from wayline.gateway.strict_json import StrictRoute
from wayline.journal import JobLog

router = APIRouter(prefix="/openai/v1", tags=["openai"], route_class=StrictRoute)

SEQUENCE_MAX: Final = 2**31
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The response, or its events.",
        "content": {"application/json": {"schema": {"type": "object"}}, EVENT_STREAM: {"schema": {"type": "string"}}},
    }
}
ResponsePath = Annotated[str, Path(pattern=RESPONSE_ID, examples=["resp_job_1f2e3d4c5b6a79880011"])]


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
    begun = await _begin(gateway, request, caller, body, idempotency_key)
    more = {"background": bool(body.background), "previous": body.previous_response_id, "metadata": body.metadata}
    headers = headers_of(ids.trace_id(caller.tenant, begun.job_id), begun.job_id)
    followed = FollowedJob(gateway, caller.tenant, begun.job_id, part=begun.part)
    if body.stream:
        told = _events(gateway, caller, followed, after=-1)
        stream = {"headers": {**UNBUFFERED, **headers}, "media_type": EVENT_STREAM}
        if body.background:
            return StreamingResponse(told, **stream)
        return JobStream(told, abandoned, caller, begun, **stream)
    if body.background:
        queued = JobView(job_id=begun.job_id, status=Status.QUEUED, agent=body.model)
        return _json(response(queued, created=datetime.now(UTC), part=followed.part, **more), headers)
    job = await abandoned.outcome(request, caller, begun, followed)
    if job is None:
        return Response(status_code=499)
    if job.cost_usd is not None:
        headers["X-Wayline-Cost"] = f"{job.cost_usd:f}"
    waits = waiting_sentence(job, base=gateway.settings.reached_at) if followed.is_parked else None
    created = job.created_at or datetime.now(UTC)
    return _json(response(job, created=created, waits=waits, part=followed.part, **more), headers)


async def _begin(
    gateway: Gateway, request: Request, caller: Caller, body: ResponsesBody, idempotency_key: str | None
) -> Begun:
    """Submit the job of a request, or go on with the one whose client has run its tools."""
    user_id = acting_as(caller, body.user)
    previous = await previous_of(gateway, caller, body)
    if body.stream or not body.background:
        gateway.streams.require_room(caller)
    if given := outputs_in(body):
        return await continue_job(gateway, request, caller, given)
    if previous is not None:
        require_no_open_calls(previous)
    session_id = session_of(body, previous)
    await require_own_session(gateway, caller, session_id)
    if not isinstance(body.input, str):
        body = body.model_copy(update={"input": await with_named_items(gateway, caller, body.input)})
    opens = session_id is None and previous is None and begins_session(body)
    before = await told_before(gateway, caller, previous) if previous is not None and session_id is None else ()
    whose = {"tenant": caller.tenant, "user_id": user_id, "session_id": "new" if opens else session_id}
    wanted = responses_to_job(body, before=before, **whose)
    await store_files(gateway, caller.tenant, wanted.files, user_id=user_id)
    return await begin_job(gateway, request, caller, wanted.job, idempotency_key=idempotency_key, opens_session=opens)


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
    job = await own_response(gateway, caller, response_id)
    job_id, part = job_and_part(response_id)
    if stream:
        gateway.streams.require_room(caller)
        followed = FollowedJob(gateway, caller.tenant, job_id, part=part)
        told = _events(gateway, caller, followed, after=starting_after)
        headers = {**UNBUFFERED, **headers_of(job.trace_id, job_id)}
        return StreamingResponse(told, headers=headers, media_type=EVENT_STREAM)
    return _json(await _as_it_is(gateway, caller, job, part), headers_of(job.trace_id, job_id))


@router.post(
    "/responses/{response_id}/cancel", response_class=Response, responses={**_ANSWERS, **fails_as_openai(404, 429)}
)
async def cancel_response(response_id: ResponsePath, gateway: GatewayDependency, caller: Writer) -> Response:
    """Ask the job of a response to stop, and return how far it is; one that has ended stays as it is."""
    job = await own_response(gateway, caller, response_id)
    job_id, part = job_and_part(response_id)
    if not has_ended(job):
        cancel = Cancel(reason="its client cancelled the response", by=caller.name)
        await gateway.signals.send(Signal(tenant=caller.tenant, job_id=job_id, signal=cancel))
    return _json(await _as_it_is(gateway, caller, job, part), headers_of(job.trace_id, job_id))


@router.delete(
    "/responses/{response_id}",
    responses={
        200: {"description": "It is being forgotten.", "content": {"application/json": {"schema": {"type": "object"}}}},
        **fails_as_openai(403, 404, 409, 429),
    },
)
async def delete_response(response_id: ResponsePath, gateway: GatewayDependency, caller: Writer) -> Response:
    """Forget the job of an ended response, with all that is of it but its cost.

    It needs the scope `admin`, or a key of the response's user.
    """
    job = await own_response(gateway, caller, response_id)
    require_own_or_admin(caller, caller.user_id)
    asked = Forget(tenant=caller.tenant, job_id=job.job_id, of_user=caller.user_id, asked_by=caller.name)
    forgetting = await gateway.bus.ask(asked, Forgetting)
    deleted = {"id": response_id, "object": "response", "deleted": True}
    return _json(deleted, {**headers_of(job.trace_id, job.job_id), "Location": f"/v1/forget/{forgetting.forget_id}"})


async def _as_it_is(gateway: Gateway, caller: Caller, job: JobView, number: int) -> dict[str, Any]:
    """Return a part of a job as it is now. Raises NotFound for one that has not begun."""
    part = JobPart(number)
    async for event in JobLog(gateway.bus, caller.tenant, job.job_id).read():
        if part.hear(event):
            job = part.view()
            break
    if not part.is_under_way:
        raise NotFound("response", response_id(job.job_id, number))
    if not part.calls and number > 1:
        job = part.view()
    waiting = job.waiting_for
    parked = waiting is not None and waiting.why in FOR_A_PERSON and not part.calls
    waits = waiting_sentence(job, base=gateway.settings.reached_at) if parked else None
    return response(job, created=job.created_at or datetime.now(UTC), waits=waits, part=part)


def _json(made: dict[str, Any], headers: dict[str, str]) -> Response:
    return Response(orjson.dumps(made), headers=headers, media_type="application/json")


async def _events(gateway: Gateway, caller: Caller, followed: FollowedJob, *, after: int) -> AsyncIterator[bytes]:
    """Yield a response's events past one of them: numbered without a gap, and the same whenever they are asked for."""
    last, opened = time.monotonic(), False
    try:
        gateway.streams.require_room(caller)
    except Retry as error:
        yield sse(error_event(error_of(error.problem()), number=after + 1))
        return
    with gateway.streams.follower(caller) as follower:
        try:
            async with aclosing(followed.news()) as news:
                async for item in news:
                    if not opened and isinstance(item, Event):
                        opened, begun = True, followed.part.view()
                        for event in opening(begun, created=begun.created_at or item.at, part=followed.part):
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
    for event in closing(job, created=job.created_at or datetime.now(UTC), waits=waits, part=followed.part):
        if event["sequence_number"] > after:
            yield sse(event)
