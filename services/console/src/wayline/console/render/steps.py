"""What a job did, step by step, from its log: calls that are under way are there too. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

TOLD: Final = frozenset({"context.injected", "memory.injected", "context.compacted"})
"""Events with a note, which the model is told with its next request."""


@dataclass(slots=True)
class ToolCall:
    """One call of a tool."""

    tool: str
    input: Any
    effect: str = ""
    status: str = "running"
    output: str = ""
    duration_ms: float | None = None
    program: str = ""
    """The call whose program made it; empty: the model asked for it itself."""
    shortened: str = ""
    """How much of the result the model was shown, where that was not all."""
    whole: str = ""
    """The result of which the model was shown a shorter form."""
    cost_usd: str | None = None
    """What its tool charged; None: nothing, or unknown."""
    repeat_of: str = ""
    """The identical call whose result this is."""


@dataclass(frozen=True, slots=True)
class Note:
    """What the platform told the model: memories, guidance about tools, a summary."""

    label: str
    text: str


@dataclass(slots=True)
class Step:
    """What the model said in one step, and the calls that it asked for."""

    number: int
    thought: str = ""
    thinking: str = ""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    """What it was told before it."""

    @property
    def cards(self) -> list[tuple[str, ToolCall, dict[str, ToolCall]]]:
        """Return the calls that the model asked for, each with those that its program made."""
        own = {key: call for key, call in self.calls.items() if call.program not in self.calls}
        return [
            (key, call, {name: one for name, one in self.calls.items() if one.program == key and name not in own})
            for key, call in own.items()
        ]


def steps_of(events: Iterable[dict[str, Any]]) -> list[Step]:
    """Return the steps of a log that did something beside answering."""
    steps: dict[int, Step] = {}
    told = list[Note]()
    for event in _with_shared(events):
        if event["type"] in TOLD:
            told.append(Note(event["note"]["label"], event["note"]["text"]))
        elif event["type"] == "model.requested":
            step = steps.setdefault(event["step"], Step(event["step"]))
            step.notes, told = (*step.notes, *told), []
        elif event["type"] in _TAKE:
            step = steps.setdefault(event["step"], Step(event["step"]))
            _TAKE[event["type"]](step, event)
    return [step for _, step in sorted(steps.items()) if step.calls or step.thinking or step.notes]


def _with_shared(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events of a log; in a fork's those that it shares with its origin, as it has them, stand in one."""
    for event in events:
        yield from event.get("prefix", ()) if event["type"] == "job.forked" else (event,)


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
    effect, program = event.get("effect") or "", event.get("program") or ""
    step.calls[event["call"]] = ToolCall(event["tool"], event["arguments"], effect=effect, program=program)


def _ended(step: Step, event: dict[str, Any]) -> None:
    call = step.calls.setdefault(event["call"], ToolCall(event["tool"], {}))
    call.status = "completed" if event["status"] == "success" else event["status"]
    error = event.get("error") or {}
    call.output = event["content"] or (error.get("message", "") if isinstance(error, dict) else str(error))
    call.duration_ms = event["duration_ms"]
    call.cost_usd, call.repeat_of = event.get("cost_usd"), event.get("repeat_of") or ""
    if event.get("full") is not None:
        call.whole = event["full"]
        shown, tokens = len(event["content"].encode("utf-8", "replace")), event.get("tokens", 0)
        in_all = round(tokens * event["size_bytes"] / shown) if shown else tokens
        call.shortened = f"shortened for the model: {tokens:,} of about {in_all:,} tokens"


_TAKE = {"model.completed": _said, "tool.requested": _begun, "tool.completed": _ended}
