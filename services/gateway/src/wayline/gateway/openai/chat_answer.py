"""A job as a chat completion, whole or in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import orjson

from wayline.contracts.jobs import JobView, PendingToolCall, Status
from wayline.gateway.openai.client_tools import FUNCTION, CallId, arguments_text
from wayline.gateway.openai.error_shape import OpenAIError, extension_of
from wayline.gateway.openai.job_parts import JobPart
from wayline.gateway.openai.token_counts import chat_usage

PIECE_CHARS: Final = 4_000
"""Of an answer in one chunk."""
REFUSED: Final = "refused"
"""The error code of a job whose model would not answer."""
DONE: Final = b"data: [DONE]\n\n"
KEEP_ALIVE: Final = b": still at work\n\n"

Finish = Literal["stop", "length", "content_filter", "tool_calls"]


def completion_id(job_id: str) -> str:
    """Return the id of a job's chat completion."""
    return f"chatcmpl-{job_id}"


def finish_of(job: JobView) -> Finish:
    """Return why an answer ends."""
    if job.error is not None:
        return "content_filter"
    return "length" if job.partial else "stop"


def is_answered(job: JobView) -> bool:
    """Return whether a job has something to say: an answer, or its model's refusal."""
    return job.status is Status.COMPLETED or (job.error is not None and job.error.code == REFUSED)


def completion(
    job: JobView, *, model: str, created: datetime, waits: str | None = None, part: JobPart | None = None
) -> dict[str, Any]:
    """Return a job as a chat completion.

    `waits`: what to say of one that waits for a person. `part`: what it was read from, with calls for the client.
    """
    calls = part.calls if part is not None else ()
    refusal = job.error.message if job.error is not None else None
    content = waits if waits is not None else (None if refusal is not None else job.answer or "")
    message = {"role": "assistant", "content": content, "refusal": refusal, "annotations": []}
    if part is not None and calls:
        message |= {"content": part.said or None, "tool_calls": [_call(job, call) for call in calls]}
    return {
        "id": completion_id(job.job_id),
        "object": "chat.completion",
        "created": int(created.timestamp()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "tool_calls" if calls else "stop" if waits is not None else finish_of(job),
            }
        ],
        "usage": chat_usage(job.usage),
        "service_tier": "default",
        "system_fingerprint": fingerprint(job),
        "wayline": extension_of(job),
    }


def _call(job: JobView, call: PendingToolCall) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": arguments_text(call)}
    return {"id": str(CallId.of(job.job_id, call)), "type": FUNCTION, "function": function}


def fingerprint(job: JobView) -> str:
    """Return what an answer was made by: the agent and its version."""
    return f"{job.agent}@{job.agent_version or 0}"


class Chunks:
    """Makes the chunks of one stream."""

    def __init__(self, job_id: str, *, model: str, created: datetime, with_usage: bool) -> None:
        self._head = {
            "id": completion_id(job_id),
            "object": "chat.completion.chunk",
            "created": int(created.timestamp()),
            "model": model,
        }
        self._with_usage = with_usage

    def begin(self) -> bytes:
        """Return the first chunk: whose words follow."""
        return self._chunk({"role": "assistant", "content": ""})

    def text(self, text: str) -> Iterator[bytes]:
        """Yield words in chunks."""
        for at in range(0, len(text), PIECE_CHARS):
            yield self._chunk({"content": text[at : at + PIECE_CHARS]})

    def retracted(self, chars: int) -> bytes:
        """Return the chunk that takes back words of a call that failed: our own clients may heed it."""
        return self._chunk({}, wayline={"retracted_chars": chars})

    def calls(self, job: JobView, calls: Sequence[PendingToolCall]) -> Iterator[bytes]:
        """Yield calls that the client is to run: the name of each, then its arguments."""
        for index, call in enumerate(calls):
            whole = _call(job, call)
            begun = {**whole, "function": {**whole["function"], "arguments": ""}}
            yield self._chunk({"tool_calls": [{"index": index, **begun}]})
            text = whole["function"]["arguments"]
            for at in range(0, len(text), PIECE_CHARS):
                piece = {"arguments": text[at : at + PIECE_CHARS]}
                yield self._chunk({"tool_calls": [{"index": index, "function": piece}]})

    def end(self, job: JobView, *, finish: Finish) -> Iterator[bytes]:
        """Yield the end of a stream: why it ends, what was used, and that it is whole."""
        if job.error is not None:
            yield self._chunk({"refusal": job.error.message})
        yield self._chunk({}, finish=finish, wayline=extension_of(job))
        if self._with_usage:
            yield _sse({**self._head, "choices": [], "usage": chat_usage(job.usage)})
        yield DONE

    def _chunk(self, delta: dict[str, Any], *, finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage: dict[str, Any] = {"usage": None} if self._with_usage else {}
        return _sse({**self._head, "choices": [choice], **usage, **more})


def failure(error: OpenAIError) -> bytes:
    """Return the end of a stream whose job has no answer."""
    return _sse(error.model_dump())


def _sse(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
