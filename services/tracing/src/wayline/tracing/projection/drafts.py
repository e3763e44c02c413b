"""Spans, steps and ledger entries as they are built from the log: open first, closed by a later event."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from wayline.contracts.events import Bounds
from wayline.contracts.money import Usage
from wayline.telemetry import names
from wayline.tracing.rows import LedgerRow, SpanRow, StepRow, as_json, clean, model_json

STEP_TEXT_MAX = 64 * 1024
"""Characters of a thought, an input or an output that a step keeps; the job's log has the rest."""
EVENTS_MAX = 64
"""Events kept on one span, the first ones; a root's tell of its claims, its waits and what was asked of it."""
OPEN = "open"
_MILLISECOND = timedelta(milliseconds=1)

PARKED = "wayline.parked_ms"


def millis(since: datetime, until: datetime) -> float:
    """Return the milliseconds between two moments; never below zero, though executors' clocks differ."""
    return max(0.0, (until - since) / _MILLISECOND)


@dataclass(slots=True)
class SpanDraft:
    """A span made from the log."""

    span_id: str
    parent: str | None
    name: str
    start: datetime
    kind: str = "internal"
    attributes: dict[str, Any] = field(default_factory=dict)
    seq: int = 0
    status: str = OPEN
    duration_ms: float | None = None
    usage: Usage | None = None
    cost_usd: Decimal | None = None
    links: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    parked_ms: float = 0.0

    @property
    def open(self) -> bool:
        return self.status == OPEN

    def close(self, at: datetime, status: str, *, error: str | None = None, took_ms: float | None = None) -> None:
        """End the span. What it took leaves out the time the job was parked: that is no work, and may be days."""
        self.status = status
        self.duration_ms = took_ms if took_ms else max(0.0, millis(self.start, at) - self.parked_ms)
        if error is not None:
            self.attributes[names.ERROR_TYPE] = error
        if self.parked_ms:
            self.attributes[PARKED] = round(self.parked_ms, 3)

    def reopen(self) -> None:
        """Open the span again: its work goes on after all."""
        self.status, self.duration_ms = OPEN, None

    def note(self, name: str, at: datetime, **attributes: Any) -> None:
        """Write down that something happened while the span was open."""
        if len(self.events) < EVENTS_MAX:
            kept = {key: value for key, value in attributes.items() if value}
            self.events.append({"name": name, "at": at.isoformat(), **({"attributes": kept} if kept else {})})

    def row(self, *, tenant: str, trace_id: str) -> SpanRow:
        return SpanRow(
            trace_id=trace_id,
            span_id=self.span_id,
            start=self.start,
            tenant=tenant,
            parent_span_id=self.parent,
            anchor=None,
            service="executor",
            name=clean(self.name),
            kind=self.kind,
            duration_ms=self.duration_ms,
            status=self.status,
            attributes=as_json(self.attributes),
            links=as_json(self.links) if self.links else None,
            events=as_json(self.events) if self.events else None,
            usage=model_json(self.usage) if self.usage else None,
            cost_usd=self.cost_usd,
            seq=self.seq,
        )


@dataclass(slots=True)
class CallDraft:
    """A tool call within a step."""

    call: str
    tool: str
    arguments: dict[str, Any]
    output: str | None = None
    duration_ms: float | None = None
    status: str = "running"
    error: str | None = None
    """The code of what went wrong."""
    span: SpanDraft | None = None
    in_program: bool = False
    """A program asked for it: its failure is the program's to deal with."""

    def shown(self) -> dict[str, Any]:
        return {
            "call": self.call,
            "tool": self.tool,
            "input": short(self.arguments),
            "output": None if self.output is None else cut(self.output),
            "duration_ms": self.duration_ms,
            "status": self.status,
            "error": self.error,
        }


@dataclass(slots=True)
class StepDraft:
    """A step: one answer of the model and the tool calls it asked for."""

    step: int
    span: SpanDraft
    seq: int = 0
    text: str = ""
    answered: bool = False
    calls: dict[str, CallDraft] = field(default_factory=dict)
    status: str = "running"

    @property
    def complete(self) -> bool:
        return self.answered and all(call.status != "running" for call in self._asked())

    def _asked(self) -> list[CallDraft]:
        """Return the calls that the model itself asked for."""
        return [call for call in self.calls.values() if not call.in_program]

    def outcome(self) -> str:
        """Return the outcome of a complete step: failed with one failed call, skipped if all were."""
        states = {call.status for call in self._asked()}
        if "failed" in states:
            return "failed"
        return "skipped" if states == {"skipped"} else "success"

    def close(self, at: datetime, status: str, *, span_status: str = "ok", error: str | None = None) -> None:
        self.status = status
        self.span.close(at, span_status, error=error)

    def row(self, *, tenant: str, job_id: str) -> StepRow:
        calls = list(self.calls.values())
        outputs = [call.output for call in calls if call.output is not None]
        if len(calls) == 1:
            given: Any = calls[0].arguments
        else:
            given = {call.call: call.arguments for call in calls} or None
        return StepRow(
            tenant=tenant,
            job_id=job_id,
            step=self.step,
            seq=self.seq,
            started_at=self.span.start,
            # Without tool calls the model's text is the step's result, not a thought on the way.
            thought=cut(clean(self.text)) if calls else "",
            tool=clean(", ".join(dict.fromkeys(call.tool for call in calls))) or None,
            input=None if given is None else short_json(given),
            output=cut(clean("\n\n".join(outputs))) if calls else cut(clean(self.text)) or None,
            calls=as_json([call.shown() for call in calls]),
            duration_ms=self.span.duration_ms,
            status=self.status,
        )


@dataclass(slots=True)
class LedgerDraft:
    """A ledger entry: one model attempt, one auxiliary call, or one tool call that cost money."""

    attempt_id: str
    step: int
    kind: str
    at: datetime
    provider: str | None = None
    model: str | None = None
    tool: str | None = None
    purpose: str | None = None
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    cost_usd: Decimal | None = None
    saved_usd: Decimal | None = None
    worst_usd: Decimal | None = None
    cache_break: str | None = None
    bounds: Bounds | None = None
    """Between what it can have cost, where nobody will ever know."""
    open: bool = True
    settled: bool = False
    seq: int = 0

    def settle(self, usage: Usage, cost_usd: Decimal | None, saved_usd: Decimal | None = None) -> None:
        """Close the entry of a call whose usage is known."""
        self.open, self.settled = False, True
        self.usage, self.cost_usd, self.saved_usd = usage, cost_usd, saved_usd

    def leave(self, bounds: Bounds) -> None:
        """Close the entry of a call whose usage will never be known."""
        self.open, self.settled, self.bounds = False, False, bounds

    def row(self, *, tenant: str, job_id: str, agent: str, user_id: str | None, session_id: str | None) -> LedgerRow:
        u = self.usage
        return LedgerRow(
            tenant,
            job_id,
            self.attempt_id,
            self.seq,
            self.step,
            self.kind,
            self.provider,
            self.model,
            self.tool,
            agent,
            user_id,
            session_id,
            u.input,
            u.cache_read,
            u.cache_write_5m,
            u.cache_write_1h,
            u.output,
            u.reasoning,
            self.cost_usd,
            self.open,
            self.settled,
            self.at,
            self.purpose,
            self.saved_usd,
            self.bounds.lower_usd if self.bounds else None,
            self.bounds.upper_usd if self.bounds else None,
            self.cache_break,
        )


def cut(text: str) -> str:
    """Cut a text to STEP_TEXT_MAX characters, and say how many more there are."""
    left = len(text) - STEP_TEXT_MAX
    return text if left <= 0 else f"{text[:STEP_TEXT_MAX]}… ({left} characters more in the job's log)"


def short(value: Any) -> Any:
    """Return a tool's arguments; as cut text where they are too long."""
    text = as_json(value)
    return value if len(text) <= STEP_TEXT_MAX else cut(text)


def short_json(value: Any) -> str:
    """Return a tool's arguments for a jsonb column; as cut text where they are too long."""
    text = as_json(value)
    return text if len(text) <= STEP_TEXT_MAX else as_json(cut(text))
