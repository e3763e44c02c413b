"""A job's spans, steps and ledger entries so far."""

from __future__ import annotations

from datetime import datetime

from wayline.contracts.events import Event
from wayline.tracing.job_metrics import Fact
from wayline.tracing.projection import genai
from wayline.tracing.projection.drafts import LedgerDraft, SpanDraft, StepDraft, millis


class JobDrafts:
    """A job's spans, steps and ledger entries, and which of them changed since the last `forget_changes`."""

    def __init__(self, tenant: str, job_id: str) -> None:
        self.tenant = tenant
        self.job_id = job_id
        self.calls: dict[str, tuple[SpanDraft, LedgerDraft]] = {}
        """The priced calls that are under way, by attempt id."""
        self.parked_at: datetime | None = None
        self.tools: set[str] = set()
        """The tools that were called, those among them that exist."""
        self._root: SpanDraft | None = None
        self._steps: dict[int, StepDraft] = {}
        self.forget_changes()

    def forget_changes(self) -> None:
        """Forget what changed, and the steps that are over: the changes were taken."""
        self.spans: dict[str, SpanDraft] = {}
        self.steps: dict[int, StepDraft] = {}
        self.entries: dict[str, LedgerDraft] = {}
        self.facts: list[Fact] = []
        self._steps = {number: step for number, step in self._steps.items() if step.span.open}

    def begin(self, event: Event) -> None:
        """Begin the root span at a job's first event, whatever its type."""
        if self._root is None:
            self._root = genai.root_span(self.tenant, self.job_id, event.at)
            self.change_span(self._root, event)

    @property
    def root(self) -> SpanDraft:
        """Return the span of the whole job."""
        assert self._root is not None
        return self._root

    def change_span(self, span: SpanDraft, event: Event) -> None:
        """Note that an event changed a span."""
        span.seq = event.seq
        self.spans[span.span_id] = span

    def change_entry(self, entry: LedgerDraft, event: Event) -> None:
        """Note that an event made or changed a ledger entry."""
        entry.seq = event.seq
        self.entries[entry.attempt_id] = entry

    def step(self, number: int, event: Event) -> StepDraft:
        """Return the step that an event belongs to; its first event begins it."""
        step = self._steps.get(number)
        if step is None:
            span = genai.step_span(self.tenant, self.job_id, number, self.root, event.at)
            step = self._steps[number] = StepDraft(number, span)
            self.change_span(span, event)
        step.seq = event.seq
        self.steps[number] = step
        return step

    @property
    def open_steps(self) -> list[StepDraft]:
        """Return the steps that are under way."""
        return [step for step in self._steps.values() if step.span.open]

    def finish(self, step: StepDraft, event: Event) -> None:
        """Close a step that an event completed."""
        outcome = step.outcome()
        step.close(event.at, outcome, span_status="error" if outcome == "failed" else "ok")
        self._step_over(step, event)

    def cut_off(self, step: StepDraft, event: Event, *, failed: bool, cause: str) -> None:
        """Close a step that the end of its job cuts off."""
        state, status = ("failed", "error") if failed else ("skipped", "unset")
        for call in [call for call in step.calls.values() if call.status == "running"]:
            call.status = state
            if call.span is not None:
                call.span.close(event.at, status, error=cause)
                self.change_span(call.span, event)
        step.close(event.at, state, span_status=status, error=cause)
        self._step_over(step, event)

    def _step_over(self, step: StepDraft, event: Event) -> None:
        step.seq = event.seq
        self.steps[step.step] = step
        self.change_span(step.span, event)

    def unpark(self, event: Event) -> None:
        """End a wait: it counts as no work for whatever was open."""
        if self.parked_at is None:
            return
        parked_ms = millis(self.parked_at, event.at)
        self.parked_at = None
        for step in self._steps.values():
            for span in (step.span, *(call.span for call in step.calls.values())):
                if span is not None and span.open:
                    span.parked_ms += parked_ms
        self.root.parked_ms += parked_ms
