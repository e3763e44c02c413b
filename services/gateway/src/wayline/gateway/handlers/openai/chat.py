"""`POST /openai/v1/chat/completions`: a conversation as a job of an agent, answered whole or in chunks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import APIRouter, Header, Request
from fastapi.responses import Response, StreamingResponse

from wayline.contracts import ids
from wayline.contracts.errors import Retry
from wayline.contracts.jobs import JobView
from wayline.gateway.event_streams import UNBUFFERED
from wayline.gateway.handlers.jobs.jobs import IdempotencyKey
from wayline.gateway.handlers.openai.abandoned_jobs import AbandonedJobs, AbandonedJobsDependency
from wayline.gateway.handlers.openai.begin_job import Begun, begin_job
from wayline.gateway.handlers.openai.continue_job import continue_job
from wayline.gateway.handlers.openai.followed_job import FollowedJob, stopping
from wayline.gateway.handlers.openai.sent_documents import store_files
from wayline.gateway.handlers.shared.dependencies import Gateway, GatewayDependency, Writer, acting_as
from wayline.gateway.handlers.shared.own_jobs import require_own_session
from wayline.gateway.keys import Caller
from wayline.gateway.openai.chat_answer import KEEP_ALIVE, Chunks, completion, failure, finish_of, is_answered
from wayline.gateway.openai.chat_body import ChatBody, Label
from wayline.gateway.openai.chat_to_job import chat_to_job, results_in, session_of
from wayline.gateway.openai.error_shape import NEVER_AGAIN, error_of, error_response, problem_of
from wayline.gateway.openai.field_rules import refuse_unsupported
from wayline.gateway.openai.streamed_text import EagerText
from wayline.gateway.openai.waiting_words import waiting_sentence
from wayline.gateway.openapi import fails_as_openai
from wayline.gateway.strict_json import StrictRoute

router = APIRouter(prefix="/openai/v1", tags=["openai"], route_class=StrictRoute)

KEEP_ALIVE_S: Final = 15.0
"""How long a stream is silent before a comment says that it lives."""
EVENT_STREAM: Final = "text/event-stream"

Session = Annotated[
    Label | None,
    Header(alias="X-Wayline-Session", description="The session that the last user message belongs to."),
]
Streamed = Annotated[
    Literal["settled", "eager"],
    Header(
        alias="X-Wayline-Stream",
        description="`eager`: send words as they are written. Those of a call that fails then cannot be taken back.",
    ),
]
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The completion, or its chunks.",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            EVENT_STREAM: {"schema": {"type": "string"}},
        },
    }
}


@router.post(
    "/chat/completions",
    response_class=Response,
    responses={**_ANSWERS, **fails_as_openai(400, 404, 409, 413, 429, 504)},
)
async def create_chat_completion(
    *,
    body: ChatBody,
    request: Request,
    gateway: GatewayDependency,
    caller: Writer,
    abandoned: AbandonedJobsDependency,
    session: Session = None,
    streamed: Streamed = "settled",
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Have an agent answer a conversation. `model` is the agent; the messages are the whole conversation.

    With `metadata.session_id` or `X-Wayline-Session` only the last user message counts, and joins that session.
    The same body with `x-stainless-retry-count` above 0, from the same key within ten minutes, is the same job.
    """
    refuse_unsupported(body.model_extra or {})
    session_id = session_of(body.metadata, session)
    user_id = acting_as(caller, body.user)
    await require_own_session(gateway, caller, session_id)
    gateway.streams.require_room(caller)
    if given := results_in(body.messages):
        begun = await continue_job(gateway, request, caller, given)
    else:
        wanted = chat_to_job(body, tenant=caller.tenant, user_id=user_id, session_id=session_id)
        await store_files(gateway, caller.tenant, wanted.files, user_id=user_id)
        begun = await begin_job(gateway, request, caller, wanted.job, idempotency_key=idempotency_key)
    followed = FollowedJob(gateway, caller.tenant, begun.job_id, part=begun.part)
    if body.stream:
        chunks = _chunk_maker(begun, body)
        told = _chunks(gateway, caller, followed, chunks, eager=streamed == "eager")
        headers = {**UNBUFFERED, **headers_of(ids.trace_id(caller.tenant, begun.job_id), begun.job_id)}
        return JobStream(told, abandoned, caller, begun, headers=headers, media_type=EVENT_STREAM)
    job = await abandoned.outcome(request, caller, begun, followed)
    return Response(status_code=499) if job is None else _whole(gateway, job, body.model, followed)


def _chunk_maker(begun: Begun, body: ChatBody) -> Chunks:
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    return Chunks(begun.job_id, model=body.model, created=datetime.now(UTC), with_usage=with_usage)


def _whole(gateway: Gateway, job: JobView, model: str, followed: FollowedJob) -> Response:
    headers = headers_of(job.trace_id, job.job_id)
    if job.cost_usd is not None:
        headers["X-Wayline-Cost"] = f"{job.cost_usd:f}"
    parked = followed.is_parked
    if not parked and not followed.part.calls and not is_answered(job):
        return error_response(problem_of(job), headers={**headers, **NEVER_AGAIN})
    waits = waiting_sentence(job, base=gateway.settings.reached_at) if parked else None
    created = job.created_at or datetime.now(UTC)
    made = completion(job, model=model, created=created, waits=waits, part=followed.part)
    return Response(orjson.dumps(made), headers=headers, media_type="application/json")


def headers_of(trace_id: str | None, job_id: str) -> dict[str, str]:
    """Return the headers that name a job and its trace."""
    return {"X-Wayline-Job": job_id, **({"X-Wayline-Trace": trace_id} if trace_id else {})}


class JobStream(StreamingResponse):
    """A stream about a job, which is abandoned where its client leaves before the end."""

    def __init__(
        self, told: AsyncIterator[bytes], abandoned: AbandonedJobs, caller: Caller, begun: Begun, **more: Any
    ) -> None:
        super().__init__(told, **more)
        self._abandoned = abandoned
        self._whose = caller, begun

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the stream; a client that is sent its end has not left."""
        with self._abandoned.waiting(*self._whose) as waiting:

            async def sent(message: Any) -> None:
                await send(message)
                if message["type"] == "http.response.body" and not message.get("more_body", False):
                    waiting.served = True

            await super().__call__(scope, receive, sent)


async def _chunks(
    gateway: Gateway, caller: Caller, followed: FollowedJob, chunks: Chunks, *, eager: bool
) -> AsyncIterator[bytes]:
    """Yield a job's answer in chunks: words as they are written, or once they are settled."""
    yield chunks.begin()
    text, last = EagerText(), time.monotonic()
    try:
        gateway.streams.require_room(caller)
    except Retry as error:
        # Of many that looked at once not all have found a place.
        yield failure(error_of(error.problem()))
        return
    with gateway.streams.follower(caller) as follower:
        try:
            async with aclosing(followed.news()) as news:
                async for item in news:
                    for piece in text.hear(item, chunks) if eager and item is not None else ():
                        last = time.monotonic()
                        yield piece
                    if time.monotonic() - last >= KEEP_ALIVE_S or item is None:
                        last = time.monotonic()
                        yield KEEP_ALIVE
        except asyncio.CancelledError:
            if not follower.absorb_stop():
                raise
            yield failure(error_of(stopping().problem()))
            return
    for piece in _ending(gateway, followed, text, chunks):
        yield piece


def _ending(gateway: Gateway, followed: FollowedJob, text: EagerText, chunks: Chunks) -> Iterator[bytes]:
    """Yield what is left to send of a job's answer, or of what it waits for, and the end."""
    job, calls = followed.outcome, followed.part.calls
    assert job is not None
    if calls:
        yield from chunks.text(text.rest(followed.part.said))
        yield from chunks.calls(job, calls)
        yield from chunks.end(job, finish="tool_calls")
    elif followed.is_parked:
        yield from chunks.text(waiting_sentence(job, base=gateway.settings.reached_at))
        yield from chunks.end(job, finish="stop")
    elif is_answered(job):
        yield from chunks.text(text.rest(job.answer or ""))
        yield from chunks.end(job, finish=finish_of(job))
    else:
        yield failure(error_of(problem_of(job)))
