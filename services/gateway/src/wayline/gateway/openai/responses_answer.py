"""A job as a response, and as the events of one: the same job makes the same events, each time it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import orjson

from wayline.contracts.jobs import JobView, PendingToolCall, Status
from wayline.contracts.money import Usage
from wayline.gateway.openai.chat_answer import PIECE_CHARS, REFUSED
from wayline.gateway.openai.client_tools import CallId, arguments_text
from wayline.gateway.openai.error_shape import OpenAIError, extension_of
from wayline.gateway.openai.job_parts import JobPart

PREFIX: Final = "resp_"
"""Before the id of a job: the id of its response."""
MESSAGE: Final = "msg_"
"""Before the same: the id of its message."""
OPENING: Final = 2
"""Events before the first that says what the answer is."""
_STATUS: Final[Mapping[Status, str]] = {
    Status.QUEUED: "queued",
    Status.RUNNING: "in_progress",
    Status.PARKED: "in_progress",
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
}


def response_id(job_id: str, part: int = 1) -> str:
    """Return the id of a job's response; of one whose client runs tools, of a part of it."""
    return f"{PREFIX}{_named(job_id, part)}"


def job_and_part(response: str) -> tuple[str, int]:
    """Return the job of a response, and which part of it that is."""
    job_id, _, part = response.removeprefix(PREFIX).partition(".")
    return job_id, int(part or 1)


def _named(job_id: str, part: int) -> str:
    return job_id if part == 1 else f"{job_id}.{part}"


def status_of(job: JobView, *, waits: str | None = None, part: JobPart | None = None) -> str:
    """Return the status of a response; `waits`: what to say of a job that waits for a person."""
    if waits is not None or _is_refused(job) or (part is not None and part.calls):
        return "completed"
    return "incomplete" if job.status is Status.COMPLETED and job.partial else _STATUS[job.status]


def response(
    job: JobView,
    *,
    created: datetime,
    waits: str | None = None,
    part: JobPart | None = None,
    background: bool = False,
    previous: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a job as a response; `part`: what it was read from, where its client runs tools."""
    status = status_of(job, waits=waits, part=part)
    failed = status == "failed" and job.error is not None
    return {
        "id": response_id(job.job_id, _number(part)),
        "object": "response",
        "created_at": int(created.timestamp()),
        "completed_at": int(job.ended_at.timestamp()) if job.ended_at and status == "completed" else None,
        "status": status,
        "background": background,
        "error": {"code": "server_error", "message": f"{job.error.code}: {job.error.message}"}
        if failed and job.error
        else None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": (part.model if part is not None else None) or job.agent,
        "output": output_items(job, waits=waits, part=part),
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "previous_response_id": previous,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": response_usage(job.usage) if status in ("completed", "incomplete", "failed") else None,
        "user": job.user_id,
        "metadata": dict(metadata or {}),
        "conversation": None if job.session_id is None else {"id": job.session_id},
        "wayline": extension_of(job),
    }


def output_items(job: JobView, *, waits: str | None = None, part: JobPart | None = None) -> list[dict[str, Any]]:
    """Return what a job answers with: its message, or what its model said beside calls of its client's tools."""
    if part is None or not part.calls:
        item = _answer_item(job, waits, _number(part))
        return [item] if item else []
    said = [_message(job, part.number, "completed", _text(part.said))] if part.said else []
    return [*said, *(_call_item(job, call) for call in part.calls)]


def _number(part: JobPart | None) -> int:
    return 1 if part is None else part.number


def _call_item(job: JobView, call: PendingToolCall) -> dict[str, Any]:
    named = CallId.of(job.job_id, call)
    return {
        "id": f"fc_{str(named).removeprefix('call_')}",
        "type": "function_call",
        "call_id": str(named),
        "name": call.tool,
        "arguments": arguments_text(call),
        "status": "completed",
    }


def _message(job: JobView, number: int, status: str, content: dict[str, Any]) -> dict[str, Any]:
    fields = {"type": "message", "role": "assistant", "status": status, "content": [content]}
    return {"id": f"{MESSAGE}{_named(job.job_id, number)}", **fields}


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _answer_item(job: JobView, waits: str | None, number: int) -> dict[str, Any] | None:
    """Return the message that a job answers with; None: it has none."""
    if waits is None and job.status is not Status.COMPLETED and not _is_refused(job):
        return None
    status = "incomplete" if status_of(job, waits=waits) == "incomplete" else "completed"
    return _message(job, number, status, _content(job, waits))


def _content(job: JobView, waits: str | None) -> dict[str, Any]:
    if waits is None and job.error is not None:
        return {"type": "refusal", "refusal": job.error.message}
    text = job.answer or "" if waits is None else waits
    return _text(text)


def response_usage(usage: Usage) -> dict[str, Any]:
    """Return the tokens of all model calls of a job, as responses name them."""
    written = usage.cache_write_5m + usage.cache_write_1h
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }


def opening(job: JobView, *, created: datetime, part: JobPart | None = None, **more: Any) -> Iterator[dict[str, Any]]:
    """Yield the events before anything is known of the answer."""
    model = (part.model if part is not None else None) or job.agent
    begun = JobView(job_id=job.job_id, status=Status.RUNNING, agent=model)
    part = JobPart(_number(part))
    begun = response(begun, created=created, part=part, **more)
    for number, kind in enumerate(("response.created", "response.in_progress")):
        yield {"type": kind, "sequence_number": number, "response": begun}


def closing(
    job: JobView, *, created: datetime, waits: str | None = None, part: JobPart | None = None, **more: Any
) -> Iterator[dict[str, Any]]:
    """Yield the events of an answer, and of the end."""
    number = OPENING
    for place, item in enumerate(output_items(job, waits=waits, part=part)):
        events = _message_events(item, place) if item["type"] == "message" else _call_events(item, place)
        for event in events:
            yield {**event, "sequence_number": number}
            number += 1
    whole = response(job, created=created, waits=waits, part=part, **more)
    # There is no event of a job that was cancelled: to its client it has failed.
    kind = whole["status"] if whole["status"] in ("completed", "incomplete") else "failed"
    yield {"type": f"response.{kind}", "sequence_number": number, "response": whole}


def _call_events(item: dict[str, Any], place: int) -> Iterator[dict[str, Any]]:
    """Yield the events of a call of the client's tool, without their numbers."""
    where, text = {"item_id": item["id"], "output_index": place}, item["arguments"]
    begun = {**item, "status": "in_progress", "arguments": ""}
    yield {"type": "response.output_item.added", "output_index": place, "item": begun}
    for at in range(0, len(text), PIECE_CHARS):
        yield {"type": "response.function_call_arguments.delta", **where, "delta": text[at : at + PIECE_CHARS]}
    yield {"type": "response.function_call_arguments.done", **where, "name": item["name"], "arguments": text}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _message_events(item: dict[str, Any], place: int) -> Iterator[dict[str, Any]]:
    """Yield the events of a message, without their numbers."""
    part, where = item["content"][0], {"item_id": item["id"], "output_index": place, "content_index": 0}
    name = "output_text" if part["type"] == "output_text" else "refusal"
    field, extra = ("text", {"logprobs": []}) if name == "output_text" else ("refusal", {})
    begun = {**item, "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": place, "item": begun}
    yield {"type": "response.content_part.added", **where, "part": {**part, field: ""}}
    for at in range(0, len(part[field]), PIECE_CHARS):
        yield {"type": f"response.{name}.delta", **where, "delta": part[field][at : at + PIECE_CHARS], **extra}
    yield {"type": f"response.{name}.done", **where, field: part[field], **extra}
    yield {"type": "response.content_part.done", **where, "part": part}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def error_event(error: OpenAIError, *, number: int) -> dict[str, Any]:
    """Return the event of a stream that ends before its job."""
    told = error.error
    return {
        "type": "error",
        "code": told.code,
        "message": told.message,
        "param": told.param,
        "sequence_number": number,
    }


def sse(event: Mapping[str, Any]) -> bytes:
    """Return an event as it is sent."""
    return f"event: {event['type']}\ndata: ".encode() + orjson.dumps(event) + b"\n\n"


def _is_refused(job: JobView) -> bool:
    return job.error is not None and job.error.code == REFUSED
