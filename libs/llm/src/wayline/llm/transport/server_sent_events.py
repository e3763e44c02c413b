"""The events of a stream (`text/event-stream`) whose data is JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import orjson

from wayline.llm.model import ModelError

DONE = b"[DONE]"


def event(frame: bytes) -> dict[str, Any] | None:
    """Read one event, its name as `type` where it has none of its own; None if it holds no JSON object."""
    data = _data(frame)
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if data.strip() in (DONE, b""):
            return None
        begins = data[:200].decode(errors="replace")
        raise ModelError("unreadable", f"an event is no JSON: {begins}", retryable=True, billable=True) from error
    if not isinstance(fields, dict):
        return None
    if "type" not in fields:
        fields["type"] = b"".join(_values(frame, b"event:")).strip().decode(errors="replace")
    return fields


def last_event(rest: bytes) -> dict[str, Any] | None:
    """Read an event without its end: it may lack only that, or be cut short and be none."""
    with suppress(ModelError):
        return event(rest)
    return None


def _data(frame: bytes) -> bytes:
    before, _, data = frame.partition(b"data:")
    if b"\n" in data or (before and not before.endswith(b"\n")):
        return b"\n".join(_values(frame, b"data:"))
    # One line, and the last one: so nearly all of them are.
    return data


def _values(frame: bytes, field: bytes) -> list[bytes]:
    return [line[len(field) :] for line in frame.split(b"\n") if line.startswith(field)]
