"""The events of a stream (`text/event-stream`) whose data is JSON."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import orjson

from wayline.llm.model import ModelError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""How a line of a stream begins."""
_DATA = b"data:"
_LONG_NUMBER = re.compile(rb"[0-9]{19,}")
"""Digits of which the fast reader may keep the first only: it makes a float of an integer that is too long for it."""
_LONG_NUMBER_DIGITS = 19
_NO_DIGITS = bytes(sorted({*range(256)} - {*b"0123456789"}))


def events(frame: bytes) -> list[dict[str, Any] | None]:
    """Read what stands between two empty lines: an event, or several where a server leaves the empty lines out."""
    return [event(frame)] if frame.count(_DATA) < 2 else [event(one) for one in _apart(frame)]


def _apart(frame: bytes) -> list[bytes]:
    """Return the events of a frame, each of whose lines of data but the last is an object by itself; else the frame."""
    apart: list[list[bytes]] = [[]]
    has_data = False
    data = [line for line in frame.split(b"\n") if line.startswith(_DATA)]
    if any(not _is_object(line[len(_DATA) :]) for line in data[:-1]):
        return [frame]
    for line in frame.split(b"\n"):
        if has_data and line.startswith((_DATA, b"event:")):
            apart.append([])
            has_data = False
        apart[-1].append(line)
        has_data = has_data or line.startswith(_DATA)
    return [b"\n".join(lines) for lines in apart]


def _is_object(data: bytes) -> bool:
    if not data.rstrip().endswith(b"}"):
        return False
    try:
        return json_object(data) is not None
    except ModelError:
        return False


def event(frame: bytes) -> dict[str, Any] | None:
    """Read one event, its name as `type` where it has none of its own; None if it holds no JSON object.

    An error has the type `error`, whatever the endpoint has put into it.
    """
    data = _data(frame)
    fields = json_object(data)
    if b"error" in frame and _name(frame) == b"error":
        return named_error(data, fields)
    if fields is not None and "type" not in fields:
        fields["type"] = "error" if fields.get("error") else _name(frame).decode(errors="replace")
    return fields


def named_error(data: bytes, fields: dict[str, Any] | None) -> dict[str, Any]:
    """Return the error that an event of that name tells, be it without a word."""
    if fields is None:
        text = data.decode(errors="replace").strip()
        return {"type": "error", "error": {"message": text or "an error without words"}}
    return fields if fields.get("type") == "error" else {"type": "error", "error": fields.get("error") or fields}


def last_events(rest: bytes) -> list[dict[str, Any] | None]:
    """Read events without an end: the last may lack only that, or be cut short and be none."""
    found: list[dict[str, Any] | None] = []
    with suppress(ModelError):
        for one in _apart(rest):
            found.append(event(one))
    return found


def json_object(data: bytes) -> dict[str, Any] | None:
    """Read a JSON object; None: it is none, as a keep-alive is none, and says nothing.

    Halves of characters are left in it, for `characters.joined`: the other half may be in the next event.
    Raises ModelError for an object that is broken: what it said is lost.
    """
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if not begins_object(data):
            return None
        fields = _read_slowly(data)
        if fields is None:
            raise broken(data) from error
    else:
        if _may_hold_long_number(data) and _LONG_NUMBER.search(data):
            fields = _read_slowly(data) or fields
    return fields if isinstance(fields, dict) else None


def _may_hold_long_number(data: bytes) -> bool:
    """Return whether there are enough digits: counted at a tenth of what it costs to look for them in a row."""
    return len(data.translate(None, _NO_DIGITS)) >= _LONG_NUMBER_DIGITS


def begins_object(data: bytes) -> bool:
    """Return whether a JSON object seems to begin here."""
    return data.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] == b"{"


def begins_stream(data: bytes) -> bool:
    """Return whether an event stream seems to begin here."""
    return data.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(_FIELDS)


def broken(data: bytes) -> ModelError:
    """Make the error of an object that cannot be read."""
    begins = data[:200].decode(errors="replace")
    return ModelError("unreadable", f"an event is no JSON: {begins}", retryable=True, billable=True)


def _read_slowly(data: bytes) -> Any:
    """Read JSON with integers of any length, whose texts may hold halves of characters; None: it is no JSON."""
    try:
        # Some endpoints write tabs and the like into texts as they are.
        return json.loads(data.removeprefix(BYTE_ORDER_MARK).decode(errors="surrogateescape"), strict=False)
    except (ValueError, RecursionError):
        return None


def _data(frame: bytes) -> bytes:
    before, _, data = frame.partition(b"data:")
    if b"\n" in data or (before and not before.endswith(b"\n")):
        return b"\n".join(_values(frame, b"data:"))
    # One line, and the last one: so nearly all of them are.
    return data


def _name(frame: bytes) -> bytes:
    return b"".join(_values(frame, b"event:")).strip()


def _values(frame: bytes, field: bytes) -> list[bytes]:
    return [line[len(field) :] for line in frame.split(b"\n") if line.startswith(field)]
