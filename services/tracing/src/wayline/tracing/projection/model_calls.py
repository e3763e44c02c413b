"""What calls of models make of their spans and ledger entries: the conversation's, and auxiliary ones beside it."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from wayline.contracts import events as e
from wayline.contracts.money import Usage
from wayline.journal import Job
from wayline.telemetry import names
from wayline.tracing.job_metrics import ModelEnded
from wayline.tracing.projection import genai
from wayline.tracing.projection.drafts import CallDraft, LedgerDraft, SpanDraft
from wayline.tracing.projection.job_drafts import JobDrafts
from wayline.tracing.rows import clean

INTERRUPTED = "interrupted"
"""The error of a model call whose end the log does not have: its job was given up, or an old build wrote it."""


def requested(drafts: JobDrafts, event: e.ModelRequested, _: Job) -> None:
    """Begin a call; what is still open of earlier steps is over."""
    interrupt(drafts, event, error=INTERRUPTED)
    for step in drafts.open_steps:
        if step.step != event.step:
            drafts.finish(step, event)
    span, entry = _begin(drafts, event, provider=event.provider, model=event.model, at=event.at)
    entry.worst_usd, entry.cache_break = event.worst_usd, event.cache_break
    if event.cache_break:
        span.attributes[names.CACHE_BREAK] = event.cache_break


def completed(drafts: JobDrafts, event: e.ModelCompleted, job: Job) -> None:
    """End a call whose answer is in the log; without tool calls its step is over, too."""
    _begin_late(drafts, event, job)
    span = _end(drafts, event)
    genai.answer_chat(span, event)
    if job.routing.route is not None:
        span.attributes[names.SLOT] = job.routing.route.slot
    step = drafts.step(event.step, event)
    step.text, step.answered = event.message.text, True
    step.calls = {c.call: CallDraft(c.call, c.tool, c.arguments) for c in event.message.tool_calls}
    if step.complete:
        drafts.finish(step, event)


def failed(drafts: JobDrafts, event: e.ModelFailed, job: Job) -> None:
    """End a call without an answer; its step goes on."""
    _begin_late(drafts, event, job)
    _end(drafts, event)
    drafts.step(event.step, event)


def aux_requested(drafts: JobDrafts, event: e.AuxiliaryRequested, job: Job) -> None:
    """Begin a call beside the conversation."""
    _begin_aux(drafts, event, job).worst_usd = event.worst_usd


def aux_ended(drafts: JobDrafts, event: e.AuxiliaryCompleted | e.AuxiliaryFailed, job: Job) -> None:
    """End a call beside the conversation."""
    if event.attempt_id not in drafts.calls:
        if isinstance(event, e.AuxiliaryFailed):
            # It was never made.
            return drafts.root.note(f"{event.purpose} not made", event.at, reason=event.error.message)
        _begin_aux(drafts, event, job)
    _end(drafts, event)


def interrupt(drafts: JobDrafts, event: e.Event, *, error: str, status: str = "error") -> None:
    """Close the calls that are under way: their outcome will not come."""
    for span, entry in drafts.calls.values():
        span.close(event.at, status, error=error)
        entry.leave(e.Bounds(lower_usd=Decimal(0), upper_usd=entry.worst_usd))
        genai.bound_chat(span, entry.bounds)
        drafts.change_span(span, event)
        drafts.change_entry(entry, event)
    drafts.calls.clear()


def _begin(
    drafts: JobDrafts,
    event: e.ModelRequested | e.ModelCompleted | e.ModelFailed,
    *,
    provider: str,
    model: str,
    at: datetime,
) -> tuple[SpanDraft, LedgerDraft]:
    span = genai.chat_span(
        drafts.tenant,
        drafts.job_id,
        step=event.step,
        attempt=event.attempt,
        provider=provider,
        model=model,
        parent=drafts.step(event.step, event).span,
        at=at,
    )
    entry = LedgerDraft(clean(event.attempt_id), event.step, "model", at, provider=clean(provider), model=clean(model))
    return _put(drafts, event, span, entry)


def _begin_late(drafts: JobDrafts, event: e.ModelCompleted | e.ModelFailed, job: Job) -> None:
    """See that a call which ends has begun, also where its request was never read."""
    if event.attempt_id not in drafts.calls:
        provider, model = (job.routing.route.provider, job.routing.route.model) if job.routing.route else ("-", "-")
        began = event.at - timedelta(milliseconds=event.duration_ms)
        _begin(drafts, event, provider=provider, model=model, at=began)


def _begin_aux(drafts: JobDrafts, event: e.AuxiliaryRequested | e.AuxiliaryCompleted, job: Job) -> LedgerDraft:
    span = genai.aux_span(drafts.tenant, drafts.job_id, event, drafts.root)
    entry = LedgerDraft(clean(event.attempt_id), job.model.step, "aux", span.start, purpose=event.purpose)
    entry.provider, entry.model = clean(event.provider), clean(event.model)
    return _put(drafts, event, span, entry)[1]


def _put(
    drafts: JobDrafts,
    event: e.ModelRequested | e.AuxiliaryRequested | genai.CallEnd,
    span: SpanDraft,
    entry: LedgerDraft,
) -> tuple[SpanDraft, LedgerDraft]:
    drafts.calls[event.attempt_id] = span, entry
    drafts.change_span(span, event)
    drafts.change_entry(entry, event)
    return span, entry


def _end(drafts: JobDrafts, event: genai.CallEnd) -> SpanDraft:
    """Close a call's span, settle its entry, and count it."""
    span, entry = drafts.calls.pop(event.attempt_id)
    drafts.change_span(span, event)
    drafts.change_entry(entry, event)
    _settle(span, entry, event)
    error = event.error.code if isinstance(event, (e.ModelFailed, e.AuxiliaryFailed)) else None
    span.close(event.at, "error" if error else "ok", error=error, took_ms=event.duration_ms)
    used, seconds = None if event.unsettled else event.usage, event.duration_ms / 1_000
    first_ms = event.first_token_ms if isinstance(event, e.ModelCompleted) else None
    first_s = None if first_ms is None else first_ms / 1_000
    drafts.facts.append(ModelEnded(entry.provider or "-", entry.model or "-", used, seconds, first_s))
    return span


def _settle(span: SpanDraft, entry: LedgerDraft, event: genai.CallEnd) -> None:
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
