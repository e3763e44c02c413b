"""What each event of a job's log makes of its spans, steps and ledger entries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.headers import TRACEPARENT
from wayline.contracts.money import Usage
from wayline.journal import Job
from wayline.telemetry import names, remote
from wayline.tracing import genai
from wayline.tracing.drafts import CallDraft, Draft, Entry, StepDraft, millis
from wayline.tracing.facts import Fact, JobEnded, ModelEnded, ToolEnded, predicted
from wayline.tracing.rows import clean

INTERRUPTED = "interrupted"
"""The error of a model call whose end the log does not have: its job was given up, or an old build wrote it."""


class Drawing:
    """A job's spans, steps and ledger entries, and which of them changed since the last `rest`."""

    def __init__(self, tenant: str, job_id: str) -> None:
        self.tenant = tenant
        self.job_id = job_id
        self.root: Draft | None = None
        self._steps: dict[int, StepDraft] = {}
        self._chats: dict[str, tuple[Draft, Entry]] = {}
        self._parked_at: datetime | None = None
        self.rest()

    def rest(self) -> None:
        """What changed was taken: forget it, and the steps that are over."""
        self.spans: dict[str, Draft] = {}
        self.steps: dict[int, StepDraft] = {}
        self.entries: dict[str, Entry] = {}
        self.facts: list[Fact] = []
        self._steps = {number: step for number, step in self._steps.items() if step.span.open}

    def draw(self, event: e.Event, job: Job) -> None:
        """Take in an event; `job` is the fold of all before it."""
        if self.root is None:
            self.root = genai.root_span(self.tenant, self.job_id, event.at)
            self._span(self.root, event)
        meaning = _MEANING.get(type(event))
        if meaning:
            meaning(self, event, self.root, job)

    def _span(self, span: Draft, event: e.Event) -> None:
        span.seq = event.seq
        self.spans[span.span_id] = span

    def _entry(self, entry: Entry, event: e.Event) -> None:
        entry.seq = event.seq
        self.entries[entry.attempt_id] = entry

    def _submitted(self, event: e.JobSubmitted, root: Draft, job: Job) -> None:
        genai.name_agent(root, event.job)
        caller = remote({TRACEPARENT: event.caller}) if event.caller else None
        if caller:
            root.links.append({"trace_id": f"{caller.trace_id:032x}", "span_id": f"{caller.span_id:016x}"})
        self._span(root, event)

    def _routed(self, event: e.JobRouted, root: Draft, job: Job) -> None:
        genai.name_policy(root, event)
        genai.name_route(root, event.route)
        self._span(root, event)

    def _rerouted(self, event: e.JobRerouted, root: Draft, job: Job) -> None:
        if event.cause == "classification":
            # Where the router itself would have sent it: the others are what befell it on its way.
            genai.name_route(root, event.route)
        root.note("rerouted", event.at, cause=event.cause, model=event.route.name, reason=event.route.reason)
        self._span(root, event)

    def _classified(self, event: e.TaskClassified, root: Draft, job: Job) -> None:
        root.note("classified", event.at, task_type=event.task_type, reason=event.reason)
        self._span(root, event)

    def _claimed(self, event: e.JobClaimed, root: Draft, job: Job) -> None:
        self._unpark(event, root)
        root.note("claimed", event.at, executor=event.executor, epoch=event.epoch)
        self._span(root, event)

    def _handed_back(self, event: e.JobHandedBack, root: Draft, job: Job) -> None:
        root.note("handed back", event.at, reason=event.reason)
        self._span(root, event)

    def _interrupt(self, event: e.Event, *, error: str | None, status: str = "error") -> None:
        """Close the model calls that are under way: their outcome will not come."""
        for chat, entry in self._chats.values():
            chat.close(event.at, status, error=error)
            entry.leave(e.Bounds(lower_usd=Decimal(0), upper_usd=entry.worst_usd))
            genai.bound_chat(chat, entry.bounds)
            self._span(chat, event)
            self._entry(entry, event)
        self._chats.clear()

    def _step(self, number: int, event: e.Event, root: Draft) -> StepDraft:
        """The step that an event belongs to, begun by the first of them."""
        step = self._steps.get(number)
        if step is None:
            span = genai.step_span(self.tenant, self.job_id, number, root, event.at)
            step = self._steps[number] = StepDraft(number, span)
            self._span(span, event)
        step.seq = event.seq
        self.steps[number] = step
        return step

    def _model_requested(self, event: e.ModelRequested, root: Draft, job: Job) -> None:
        self._interrupt(event, error=INTERRUPTED)
        for step in [step for step in self._steps.values() if step.step != event.step and step.span.open]:
            self._finish(step, event)
        span, entry = self._begin_chat(event, root, provider=event.provider, model=event.model, at=event.at)
        entry.worst_usd = event.worst_usd
        if event.cache_break:
            span.attributes[names.CACHE_BREAK] = event.cache_break

    def _begin_chat(
        self,
        event: e.ModelRequested | e.ModelCompleted | e.ModelFailed,
        root: Draft,
        *,
        provider: str,
        model: str,
        at: datetime,
    ) -> tuple[Draft, Entry]:
        span = genai.chat_span(
            self.tenant,
            self.job_id,
            step=event.step,
            attempt=event.attempt,
            provider=provider,
            model=model,
            parent=self._step(event.step, event, root).span,
            at=at,
        )
        entry = Entry(clean(event.attempt_id), event.step, "model", at, provider=clean(provider), model=clean(model))
        self._chats[event.attempt_id] = span, entry
        self._span(span, event)
        self._entry(entry, event)
        return span, entry

    def _end_chat(self, event: e.ModelCompleted | e.ModelFailed, root: Draft, job: Job) -> tuple[Draft, Entry]:
        """The call that this event ends, also when its request was never read."""
        if event.attempt_id not in self._chats:
            provider, model = (job.route.provider, job.route.model) if job.route else ("-", "-")
            began = event.at - timedelta(milliseconds=event.duration_ms)
            self._begin_chat(event, root, provider=provider, model=model, at=began)
        span, entry = self._chats.pop(event.attempt_id)
        self._span(span, event)
        self._entry(entry, event)
        self._settle(span, entry, event)
        used, seconds = None if event.unsettled else event.usage, event.duration_ms / 1_000
        self.facts.append(ModelEnded(entry.provider or "-", entry.model or "-", used, seconds))
        return span, entry

    def _settle(self, span: Draft, entry: Entry, event: genai.CallEnd) -> None:
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

    def _aux_requested(self, event: e.AuxiliaryRequested, root: Draft, job: Job) -> None:
        _, entry = self._begin_aux(event, root, job)
        entry.worst_usd = event.worst_usd

    def _begin_aux(
        self, event: e.AuxiliaryRequested | e.AuxiliaryCompleted, root: Draft, job: Job
    ) -> tuple[Draft, Entry]:
        span = genai.aux_span(self.tenant, self.job_id, event, root)
        entry = Entry(clean(event.attempt_id), job.step, "aux", span.start, purpose=event.purpose)
        entry.provider, entry.model = clean(event.provider), clean(event.model)
        self._chats[event.attempt_id] = span, entry
        self._span(span, event)
        self._entry(entry, event)
        return span, entry

    def _aux_ended(self, event: e.AuxiliaryCompleted | e.AuxiliaryFailed, root: Draft, job: Job) -> None:
        if event.attempt_id not in self._chats:
            if isinstance(event, e.AuxiliaryFailed):
                # It was never made.
                return root.note(f"{event.purpose} not made", event.at, reason=event.error.message)
            self._begin_aux(event, root, job)
        span, entry = self._chats.pop(event.attempt_id)
        self._span(span, event)
        self._entry(entry, event)
        self._settle(span, entry, event)
        error = event.error.code if isinstance(event, e.AuxiliaryFailed) else None
        span.close(event.at, "error" if error else "ok", error=error, took_ms=event.duration_ms)
        used, seconds = None if event.unsettled else event.usage, event.duration_ms / 1_000
        self.facts.append(ModelEnded(entry.provider or "-", entry.model or "-", used, seconds))

    def _model_completed(self, event: e.ModelCompleted, root: Draft, job: Job) -> None:
        span, _ = self._end_chat(event, root, job)
        genai.answer_chat(span, event)
        if job.route is not None:
            span.attributes[names.SLOT] = job.route.slot
        span.close(event.at, "ok", took_ms=event.duration_ms)
        step = self._step(event.step, event, root)
        step.said, step.answered = event.message.text, True
        step.calls = {c.call: CallDraft(c.call, c.tool, c.arguments) for c in event.message.tool_calls}
        if step.complete:
            self._finish(step, event)

    def _model_failed(self, event: e.ModelFailed, root: Draft, job: Job) -> None:
        span, _ = self._end_chat(event, root, job)
        self._step(event.step, event, root)
        span.close(event.at, "error", error=event.error.code, took_ms=event.duration_ms)

    def _tool_requested(self, event: e.ToolRequested, root: Draft, job: Job) -> None:
        _, call, span = self._call(event, root)
        # Not as the model said it: what it called through `use_tool` is the tool itself.
        call.tool, call.arguments, call.status = event.tool, event.arguments, "running"
        span.attributes[names.EFFECT] = event.effect.value
        span.reopen()

    def _call(self, event: e.ToolRequested | e.ToolCompleted, root: Draft) -> tuple[StepDraft, CallDraft, Draft]:
        """A tool call within its step, and its span."""
        step = self._step(event.step, event, root)
        call = step.calls.setdefault(event.call, CallDraft(event.call, event.tool, {}))
        # A call that a human lets run again goes on in its span: the start is part of what names a span's row.
        call.span = call.span or genai.tool_span(self.tenant, self.job_id, event, step.span)
        self._span(call.span, event)
        return step, call, call.span

    def _tool_completed(self, event: e.ToolCompleted, root: Draft, job: Job) -> None:
        step, call, span = self._call(event, root)
        call.status, call.duration_ms = event.status, event.duration_ms
        call.output = event.error.message if event.error else event.content
        status = {"success": "ok", "failed": "error", "skipped": "unset"}[event.status]
        span.close(event.at, status, error=event.error.code if event.error else None, took_ms=event.duration_ms)
        if event.cost_usd is not None:
            span.cost_usd = event.cost_usd
            span.attributes[names.COST] = str(event.cost_usd)
            key = ids.tool_key(self.tenant, self.job_id, event.step, event.call)
            entry = Entry(clean(key), event.step, "tool", event.at, tool=clean(event.tool))
            entry.settle(Usage(), event.cost_usd)
            self._entry(entry, event)
        # A name that no tool has comes from a model: such names must not become label values without end.
        known = not (event.error and event.error.code == "unknown_tool")
        effect = str(span.attributes.get(names.EFFECT, "-"))
        self.facts.append(ToolEnded(event.tool if known else "-", effect, event.status, event.duration_ms / 1_000))
        if step.complete:
            self._finish(step, event)

    def _finish(self, step: StepDraft, event: e.Event) -> None:
        outcome = step.outcome()
        step.close(event.at, outcome, span_status="error" if outcome == "failed" else "ok")
        self._step_over(step, event)

    def _step_over(self, step: StepDraft, event: e.Event) -> None:
        step.seq = event.seq
        self.steps[step.step] = step
        self._span(step.span, event)

    def _parked(self, event: e.JobParked, root: Draft, job: Job) -> None:
        self._parked_at = event.at
        root.note("parked", event.at, why=event.waiting.why)
        self._span(root, event)

    def _resumed(self, event: e.JobResumed, root: Draft, job: Job) -> None:
        self._unpark(event, root)
        root.note("resumed", event.at)
        self._span(root, event)

    def _unpark(self, event: e.Event, root: Draft) -> None:
        """The wait is over: it counts as no work for whatever was open."""
        if self._parked_at is None:
            return
        parked_ms = millis(self._parked_at, event.at)
        self._parked_at = None
        for step in self._steps.values():
            for span in (step.span, *(call.span for call in step.calls.values())):
                if span is not None and span.open:
                    span.parked_ms += parked_ms
        root.parked_ms += parked_ms

    def _noted(self, event: e.CancelRequested | e.BudgetRaised | e.DecisionMade, root: Draft, job: Job) -> None:
        root.note(event.type, event.at, by=event.by)
        self._span(root, event)

    def _ended(self, event: e.JobCompleted | e.JobFailed | e.JobCancelled, root: Draft, job: Job) -> None:
        self._unpark(event, root)
        error = event.error.code if isinstance(event, e.JobFailed) else None
        outcome = event.type.removeprefix("job.")
        self._interrupt(event, error=error or outcome, status="error" if error else "unset")
        for step in [step for step in self._steps.values() if step.span.open]:
            self._cut_off(step, event, failed=error is not None, cause=error or outcome)
        root.attributes[genai.JOB_STATUS] = outcome
        root.close(event.at, {"completed": "ok", "failed": "error"}.get(outcome, "unset"), error=error)
        self._span(root, event)
        # An agent that was never found is a word of the client's, not a label.
        agent = job.submitted.agent if job.submitted and job.config else "-"
        self.facts.append(JobEnded(outcome, agent, millis(root.start, event.at) / 1_000, *predicted(event, job.route)))

    def _cut_off(self, step: StepDraft, event: e.Event, *, failed: bool, cause: str) -> None:
        """Close a step that the end of its job cuts off."""
        state, status = ("failed", "error") if failed else ("skipped", "unset")
        for call in [call for call in step.calls.values() if call.status == "running"]:
            call.status = state
            if call.span is not None:
                call.span.close(event.at, status, error=cause)
                self._span(call.span, event)
        step.close(event.at, state, span_status=status, error=cause)
        self._step_over(step, event)


_MEANING: dict[type[e.Event], Callable[[Drawing, Any, Draft, Job], None]] = {
    e.JobSubmitted: Drawing._submitted,
    e.JobRouted: Drawing._routed,
    e.JobRerouted: Drawing._rerouted,
    e.JobClaimed: Drawing._claimed,
    e.JobHandedBack: Drawing._handed_back,
    e.ModelRequested: Drawing._model_requested,
    e.ModelCompleted: Drawing._model_completed,
    e.ModelFailed: Drawing._model_failed,
    e.AuxiliaryRequested: Drawing._aux_requested,
    e.AuxiliaryCompleted: Drawing._aux_ended,
    e.AuxiliaryFailed: Drawing._aux_ended,
    e.TaskClassified: Drawing._classified,
    e.ToolRequested: Drawing._tool_requested,
    e.ToolCompleted: Drawing._tool_completed,
    e.DecisionMade: Drawing._noted,
    e.JobParked: Drawing._parked,
    e.JobResumed: Drawing._resumed,
    e.CancelRequested: Drawing._noted,
    e.BudgetRaised: Drawing._noted,
    e.JobCompleted: Drawing._ended,
    e.JobFailed: Drawing._ended,
    e.JobCancelled: Drawing._ended,
}
