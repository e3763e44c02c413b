"""Recognises a tool call that brings the same result again and again."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from wayline.contracts.chat import ToolCall
from wayline.contracts.events import ToolCompleted

KNOWN_MAX = 64
"""Different calls of a job that are compared with, newest first to stay: a loop is short."""


class Repeated(NamedTuple):
    """A tool call by its name and arguments, and how often in a row it brought the same result."""

    tool: str
    arguments: dict[str, Any]
    result: int
    """The hash of what the tool returned: it differs from process to process, as the fold's states are never stored."""
    times: int
    step: int
    """With `number`, the call whose result it is."""
    number: str
    error: str | None = None
    """The code of the error that it brought."""

    def is_of(self, call: ToolCall) -> bool:
        """Return whether a call names the same tool and equal arguments, in whatever order they are written."""
        # To Python, 1, 1.0 and True are equal; to JSON they are not. Most calls differ anyway, and need no text.
        return (
            self.tool == call.tool
            and self.arguments == call.arguments
            and _canonical(self.arguments) == _canonical(call.arguments)
        )


def repeated(known: tuple[Repeated, ...], call: ToolCall) -> Repeated | None:
    """Return how often a call was made already with one result."""
    for one in known:
        # Most calls differ in their arguments, which is seen sooner here than by a call.
        if one.arguments == call.arguments and one.is_of(call):
            return one
    return None


def counted(known: tuple[Repeated, ...], call: ToolCall, event: ToolCompleted) -> tuple[Repeated, ...]:
    """Return the known calls once one of them has ended, the last to be repeated last."""
    before, error = repeated(known, call), event.error
    now = Repeated(
        call.tool, call.arguments, _result_hash(event), 1, event.step, event.call, error.code if error else None
    )
    if before is None:
        return (*known, now)[-KNOWN_MAX:]
    if event.repeat_of is not None or before.result == now.result:
        now = before._replace(times=before.times + 1)
    return (*(one for one in known if one is not before), now)


def _result_hash(event: ToolCompleted) -> int:
    images = tuple(image.sha256 for image in event.images)
    error = (event.error.code, event.error.message) if event.error else None
    whole = event.content if event.full is None else event.full
    return hash((event.status, whole, error, images))


def _canonical(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)
