"""What a job did, step by step, from its log: calls that are under way are there too. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(slots=True)
class ToolCall:
    """One call of a tool."""

    tool: str
    input: Any
    effect: str = ""
    status: str = "running"
    output: str = ""
    duration_ms: float | None = None
    is_nested: bool = False
    """Whether a program of the model made it."""
    shortened: str = ""
    """How much of the result the model was shown, where that was not all."""


@dataclass(slots=True)
class Step:
    """What the model said in one step, and the calls that it asked for."""

    number: int
    thought: str = ""
    thinking: str = ""
    calls: dict[str, ToolCall] = field(default_factory=dict)


def steps_of(events: Iterable[dict[str, Any]]) -> list[Step]:
    """Return the steps of a log that did something beside answering."""
    steps: dict[int, Step] = {}
    for event in events:
        if event["type"] in ("model.completed", "tool.requested", "tool.completed"):
            step = steps.setdefault(event["step"], Step(event["step"]))
            _TAKE[event["type"]](step, event)
    return [step for _, step in sorted(steps.items()) if step.calls or step.thinking]


def newest_of(steps: Sequence[Step], calls_max: int) -> tuple[list[Step], int]:
    """Return the newest steps with at most so many calls in all, and how many calls are left out."""
    room = calls_max
    kept = list[Step]()
    for step in reversed(steps):
        if room <= 0:
            break
        calls = dict(list(step.calls.items())[-room:])
        kept.append(replace(step, calls=calls))
        room -= max(len(calls), 1)
    left_out = sum(len(step.calls) for step in steps) - sum(len(step.calls) for step in kept)
    return kept[::-1], left_out


def _said(step: Step, event: dict[str, Any]) -> None:
    message = event["message"]
    step.thinking = message.get("thinking") or ""
    # Words without a call are the answer, which the page shows by itself.
    step.thought = message["text"] if message["tool_calls"] else ""
    for wanted in message["tool_calls"]:
        step.calls.setdefault(wanted["call"], ToolCall(wanted["tool"], wanted["arguments"], status="queued"))


def _begun(step: Step, event: dict[str, Any]) -> None:
    nested = event.get("program") is not None
    effect = event.get("effect") or ""
    step.calls[event["call"]] = ToolCall(event["tool"], event["arguments"], effect=effect, is_nested=nested)


def _ended(step: Step, event: dict[str, Any]) -> None:
    call = step.calls.setdefault(event["call"], ToolCall(event["tool"], {}))
    call.status = "completed" if event["status"] == "success" else event["status"]
    error = event.get("error") or {}
    call.output = event["content"] or (error.get("message", "") if isinstance(error, dict) else str(error))
    call.duration_ms = event["duration_ms"]
    shown = len(event["content"].encode("utf-8", "replace"))
    if event.get("full") is not None:
        call.shortened = f"shortened for the model: {shown:,} of {event['size_bytes']:,} bytes"


_TAKE = {"model.completed": _said, "tool.requested": _begun, "tool.completed": _ended}
