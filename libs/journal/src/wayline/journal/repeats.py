"""Recognises a tool call that brings the same result again and again."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import NamedTuple

from wayline.contracts.chat import ToolCall
from wayline.contracts.events import ToolCompleted

KNOWN_MAX = 64
"""Different calls of a job that are compared with, newest first to stay: a loop is short."""
_HASH_BYTES = 12


class Repeated(NamedTuple):
    """A tool call by its name and arguments, and how often in a row it brought the same result."""

    call: str
    """The hash of the tool's name and its canonical arguments."""
    result: str
    """The hash of what the tool returned."""
    times: int
    step: int
    """With `number`, the call whose result it is."""
    number: str
    error: str | None = None
    """The code of the error that it brought."""


def call_hash(call: ToolCall) -> str:
    """Return the same for two calls of a tool whose arguments are equal, in whatever order they are written."""
    return _hash(json.dumps([call.tool, call.arguments], sort_keys=True))


def counted(known: tuple[Repeated, ...], call: ToolCall, event: ToolCompleted) -> tuple[Repeated, ...]:
    """Return the known calls once one of them has ended, the last to be repeated last."""
    same = call_hash(call)
    before = next((one for one in known if one.call == same), None)
    now = Repeated(same, _result_hash(event), 1, event.step, event.call, event.error.code if event.error else None)
    if before is not None and (event.repeat_of is not None or before.result == now.result):
        now = before._replace(times=before.times + 1)
    return (*(one for one in known if one.call != same), now)[-KNOWN_MAX:]


def _result_hash(event: ToolCompleted) -> str:
    images = [image.sha256 for image in event.images]
    error = [event.error.code, event.error.message] if event.error else None
    whole = event.content if event.full is None else event.full
    return _hash(json.dumps([event.status, whole, error, images]))


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()
