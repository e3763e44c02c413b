"""What calls of models make of their spans and ledger entries: the conversation's, and auxiliary ones beside it."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from wayline.contracts import events as e
from wayline.contracts.money import Usage
from wayline.journal import Job
from wayline.telemetry import names
from wayline.tracing import genai
from wayline.tracing.drafts import CallDraft, Draft, Entry
from wayline.tracing.drawing.canvas import Canvas
from wayline.tracing.facts import ModelEnded
from wayline.tracing.rows import clean

INTERRUPTED = "interrupted"
"""The error of a model call whose end the log does not have: its job was given up, or an old build wrote it."""


def requested(canvas: Canvas, event: e.ModelRequested, _: Job) -> None:
    """Begin a call; what is still open of earlier steps is over."""
    interrupt(canvas, event, error=INTERRUPTED)
    for step in canvas.open_steps:
        if step.step != event.step:
            canvas.finish(step, event)
    span, entry = _begin(canvas, event, provider=event.provider, model=event.model, at=event.at)
    entry.worst_usd = event.worst_usd
    if event.cache_break:
        span.attributes[names.CACHE_BREAK] = event.cache_break


def completed(canvas: Canvas, event: e.ModelCompleted, job: Job) -> None:
    """End a call whose answer is in the log; without tool calls its step is over, too."""
    _begin_late(canvas, event, job)
    span = _end(canvas, event)
    genai.answer_chat(span, event)
    if job.route is not None:
        span.attributes[names.SLOT] = job.route.slot
    step = canvas.step(event.step, event)
    step.said, step.answered = event.message.text, True
    step.calls = {c.call: CallDraft(c.call, c.tool, c.arguments) for c in event.message.tool_calls}
    if step.complete:
        canvas.finish(step, event)


def failed(canvas: Canvas, event: e.ModelFailed, job: Job) -> None:
    """End a call without an answer; its step goes on."""
    _begin_late(canvas, event, job)
    _end(canvas, event)
    canvas.step(event.step, event)


def aux_requested(canvas: Canvas, event: e.AuxiliaryRequested, job: Job) -> None:
    """Begin a call beside the conversation."""
    _begin_aux(canvas, event, job).worst_usd = event.worst_usd


def aux_ended(canvas: Canvas, event: e.AuxiliaryCompleted | e.AuxiliaryFailed, job: Job) -> None:
    """End a call beside the conversation."""
    if event.attempt_id not in canvas.calls:
        if isinstance(event, e.AuxiliaryFailed):
            # It was never made.
            return canvas.root.note(f"{event.purpose} not made", event.at, reason=event.error.message)
        _begin_aux(canvas, event, job)
    _end(canvas, event)


def interrupt(canvas: Canvas, event: e.Event, *, error: str, status: str = "error") -> None:
    """Close the calls that are under way: their outcome will not come."""
    for span, entry in canvas.calls.values():
        span.close(event.at, status, error=error)
        entry.leave(e.Bounds(lower_usd=Decimal(0), upper_usd=entry.worst_usd))
        genai.bound_chat(span, entry.bounds)
        canvas.change(span, event)
        canvas.enter(entry, event)
    canvas.calls.clear()


def _begin(
    canvas: Canvas,
    event: e.ModelRequested | e.ModelCompleted | e.ModelFailed,
    *,
    provider: str,
    model: str,
    at: datetime,
) -> tuple[Draft, Entry]:
    span = genai.chat_span(
        canvas.tenant,
        canvas.job_id,
        step=event.step,
        attempt=event.attempt,
        provider=provider,
        model=model,
        parent=canvas.step(event.step, event).span,
        at=at,
    )
    entry = Entry(clean(event.attempt_id), event.step, "model", at, provider=clean(provider), model=clean(model))
    return _put(canvas, event, span, entry)


def _begin_late(canvas: Canvas, event: e.ModelCompleted | e.ModelFailed, job: Job) -> None:
    """See that a call which ends has begun, also where its request was never read."""
    if event.attempt_id not in canvas.calls:
        provider, model = (job.route.provider, job.route.model) if job.route else ("-", "-")
        began = event.at - timedelta(milliseconds=event.duration_ms)
        _begin(canvas, event, provider=provider, model=model, at=began)


def _begin_aux(canvas: Canvas, event: e.AuxiliaryRequested | e.AuxiliaryCompleted, job: Job) -> Entry:
    span = genai.aux_span(canvas.tenant, canvas.job_id, event, canvas.root)
    entry = Entry(clean(event.attempt_id), job.step, "aux", span.start, purpose=event.purpose)
    entry.provider, entry.model = clean(event.provider), clean(event.model)
    return _put(canvas, event, span, entry)[1]


def _put(
    canvas: Canvas,
    event: e.ModelRequested | e.AuxiliaryRequested | genai.CallEnd,
    span: Draft,
    entry: Entry,
) -> tuple[Draft, Entry]:
    canvas.calls[event.attempt_id] = span, entry
    canvas.change(span, event)
    canvas.enter(entry, event)
    return span, entry


def _end(canvas: Canvas, event: genai.CallEnd) -> Draft:
    """Close a call's span, settle its entry, and count it."""
    span, entry = canvas.calls.pop(event.attempt_id)
    canvas.change(span, event)
    canvas.enter(entry, event)
    _settle(span, entry, event)
    error = event.error.code if isinstance(event, (e.ModelFailed, e.AuxiliaryFailed)) else None
    span.close(event.at, "error" if error else "ok", error=error, took_ms=event.duration_ms)
    used, seconds = None if event.unsettled else event.usage, event.duration_ms / 1_000
    canvas.facts.append(ModelEnded(entry.provider or "-", entry.model or "-", used, seconds))
    return span


def _settle(span: Draft, entry: Entry, event: genai.CallEnd) -> None:
    if event.unsettled is not None:
        entry.leave(event.unsettled)
        genai.bound_chat(span, event.unsettled)
    elif event.usage is not None:
        saved_usd = event.saved_usd if isinstance(event, e.ModelCompleted) else None
        entry.settle(event.usage, event.cost_usd, saved_usd)
        genai.price_chat(span, event.usage, event)
    else:
        # The provider refused before it had begun: nothing was used, and nothing is owed.
        entry.settle(Usage(), Decimal(0))
