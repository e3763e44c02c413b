"""What calls of tools make of their spans, their step, and the ledger where they cost something."""

from __future__ import annotations

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.money import Usage
from wayline.contracts.tools import RUN_CODE
from wayline.journal import Job
from wayline.telemetry import names
from wayline.tracing.job_metrics import ApprovalEnded, ToolEnded
from wayline.tracing.projection import genai
from wayline.tracing.projection.drafts import CallDraft, LedgerDraft, SpanDraft, StepDraft, millis
from wayline.tracing.projection.job_drafts import JobDrafts
from wayline.tracing.rows import clean


def requested(drafts: JobDrafts, event: e.ToolRequested, _: Job) -> None:
    """Begin a call, or let it go on where a human wants it run again."""
    step = drafts.step(event.step, event)
    call, span = _call(drafts, event, step)
    if event.tool == RUN_CODE:
        step.span.attributes[names.METHOD] = "code"
        drafts.change_span(step.span, event)
    # Not as the model said it: what it called through `use_tool` is the tool itself.
    call.tool, call.arguments, call.status, call.error = event.tool, event.arguments, "running", None
    span.attributes[names.EFFECT] = event.effect.value
    span.reopen()


def completed(drafts: JobDrafts, event: e.ToolCompleted, _: Job) -> None:
    """End a call; the last one of a step ends the step."""
    step = drafts.step(event.step, event)
    call, span = _call(drafts, event, step)
    call.status, call.duration_ms = event.status, event.duration_ms
    call.error = event.error.code if event.error else None
    call.output = event.error.message if event.error else event.content
    status = {"success": "ok", "failed": "error", "skipped": "unset"}[event.status]
    span.close(event.at, status, error=call.error, took_ms=event.duration_ms)
    _price(drafts, event, span)
    # A name that no tool has comes from a model: such names must not become label values without end.
    known = call.error != "unknown_tool"
    if known:
        drafts.tools.add(clean(event.tool))
    effect = str(span.attributes.get(names.EFFECT, "-"))
    drafts.facts.append(ToolEnded(event.tool if known else "-", effect, event.status, event.duration_ms / 1_000))
    if step.complete:
        drafts.finish(step, event)


def rewritten(drafts: JobDrafts, event: e.QueryRewritten, _: Job) -> None:
    """Note that a model wrote what a search was to find, or why its query stayed; the words are in the call's span."""
    name = "query rewritten" if event.rewritten else "query not rewritten"
    drafts.root.note(name, event.at, call=f"{event.step}/{event.call}", reason=event.reason or "")
    drafts.change_span(drafts.root, event)


def reranked(drafts: JobDrafts, event: e.PassagesReranked, _: Job) -> None:
    """Note which of a search's passages a model chose, or why their order stayed."""
    about = f"{event.step}/{event.call}"
    order = ", ".join(str(at + 1) for at in event.order)
    name = "passages reranked" if event.reranked else "passages not reranked"
    drafts.root.note(name, event.at, call=about, order=order, reason=event.reason or "")
    drafts.change_span(drafts.root, event)


def approval_requested(drafts: JobDrafts, event: e.ApprovalRequested, _: Job) -> None:
    """Begin a call's span with the question whether it may be made."""
    call, span = _call(drafts, event, drafts.step(event.step, event))
    call.tool, call.arguments, call.status = event.tool, event.arguments, "running"
    span.note("approval requested", event.at, approval_id=event.approval_id, why=event.why)


def approval_decided(drafts: JobDrafts, event: e.ApprovalDecided, job: Job) -> None:
    """Write the decision, who made it and how long it took to the call's span."""
    asked = next((one for one in job.tools.pending if one.approval_id == event.approval_id), None)
    if asked is None:
        return
    _, span = _call(drafts, asked, drafts.step(asked.step, event))
    waited_ms = round(millis(asked.at, event.at), 3)
    span.attributes |= {names.APPROVAL_DECISION: event.decision, names.APPROVAL_WAIT_MS: waited_ms}
    if event.by:
        span.attributes[names.APPROVAL_BY] = event.by
    span.note("approval decided", event.at, approval_id=event.approval_id, decision=event.decision, by=event.by)
    drafts.change_span(span, event)
    drafts.facts.append(ApprovalEnded(event.decision, waited_ms / 1_000))


CallEvent = e.ToolRequested | e.ToolCompleted | e.ApprovalRequested


def _call(drafts: JobDrafts, event: CallEvent, step: StepDraft) -> tuple[CallDraft, SpanDraft]:
    """Return a tool call within its step, and its span."""
    call = step.calls.setdefault(event.call, CallDraft(event.call, event.tool, {}))
    parent = step.span
    if isinstance(event, e.ToolRequested | e.ApprovalRequested) and event.program is not None:
        call.in_program = True
        program = step.calls.get(event.program) or _begun_elsewhere(drafts, event, event.program, step)
        parent = program.span or parent
    # A call that a human lets run again goes on in its span: the start is part of what names a span's row.
    call.span = call.span or genai.tool_span(drafts.tenant, drafts.job_id, event, parent)
    drafts.change_span(call.span, event)
    return call, call.span


def _begun_elsewhere(
    drafts: JobDrafts, event: e.ToolRequested | e.ApprovalRequested, program: str, step: StepDraft
) -> CallDraft:
    """Begin a program whose intent is in the log of the job that this one branched off."""
    named = event.model_copy(update={"call": program, "tool": RUN_CODE})
    call = step.calls[program] = CallDraft(program, RUN_CODE, {})
    call.span = genai.tool_span(drafts.tenant, drafts.job_id, named, step.span)
    step.span.attributes[names.METHOD] = "code"
    drafts.change_span(call.span, event)
    return call


def _price(drafts: JobDrafts, event: e.ToolCompleted, span: SpanDraft) -> None:
    """Enter what a call cost, where it cost something."""
    key = clean(ids.tool_key(drafts.tenant, drafts.job_id, event.step, event.call))
    if event.cost_usd is not None:
        span.cost_usd = event.cost_usd
        span.attributes[names.COST] = str(event.cost_usd)
        entry = LedgerDraft(key, event.step, "tool", event.at, tool=clean(event.tool))
        entry.settle(Usage(), event.cost_usd)
        drafts.change_entry(entry, event)
    if event.unsettled is not None:
        # Beside what is known: a call that was made again has both.
        entry = LedgerDraft(f"{key}/unsettled", event.step, "tool", event.at, tool=clean(event.tool))
        entry.leave(event.unsettled)
        drafts.change_entry(entry, event)
