"""Reads what came of earlier calls of a held job from its log."""

from __future__ import annotations

from typing import Any

from wayline.executor.hold.log_writer import LogWriter
from wayline.executor.prompt.builtin_tools import WholeResult, ended_call, shown_instead, whole_result

SHOWN = ("status", "content", "error", "citations", "loaded", "words")


async def read_result(writer: LogWriter, step: int, call: str) -> WholeResult | None:
    """Return the whole result of a tool call; None: there is none."""
    event = ended_call(await writer.records_since(step), step, call)
    return None if event is None else whole_result(writer.job, event)


async def read_shown_result(writer: LogWriter, step: int, call: str) -> dict[str, Any] | None:
    """Return what the model was shown of a tool call, as fields of `ToolCompleted`; None: it has not ended."""
    records = await writer.records_since(step)
    event = ended_call(records, step, call)
    if event is None:
        return None
    event = {**event, **shown_instead(records, step, call)}
    return {name: event[name] for name in SHOWN if event.get(name) is not None}
