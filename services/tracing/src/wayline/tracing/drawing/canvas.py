"""What has been drawn of a job so far."""

from __future__ import annotations

from datetime import datetime

from wayline.contracts.events import Event
from wayline.tracing import genai
from wayline.tracing.drafts import Draft, Entry, StepDraft, millis
from wayline.tracing.facts import Fact


class Canvas:
    """A job's spans, steps and ledger entries, and which of them changed since the last `rest`."""

    def __init__(self, tenant: str, job_id: str) -> None:
        self.tenant = tenant
        self.job_id = job_id
        self.calls: dict[str, tuple[Draft, Entry]] = {}
        """The priced calls that are under way, by attempt id."""
        self.parked_at: datetime | None = None
        self._root: Draft | None = None
        self._steps: dict[int, StepDraft] = {}
        self.rest()

    def rest(self) -> None:
        """What changed was taken: forget it, and the steps that are over."""
        self.spans: dict[str, Draft] = {}
        self.steps: dict[int, StepDraft] = {}
        self.entries: dict[str, Entry] = {}
        self.facts: list[Fact] = []
        self._steps = {number: step for number, step in self._steps.items() if step.span.open}

    def begin(self, event: Event) -> None:
        """The first event of a job begins its root span, whatever it says."""
        if self._root is None:
            self._root = genai.root_span(self.tenant, self.job_id, event.at)
            self.change(self._root, event)

    @property
    def root(self) -> Draft:
        """The span of the whole job."""
        assert self._root is not None
        return self._root

    def change(self, span: Draft, event: Event) -> None:
        """An event changed a span."""
        span.seq = event.seq
        self.spans[span.span_id] = span

    def enter(self, entry: Entry, event: Event) -> None:
        """An event made or changed a ledger entry."""
        entry.seq = event.seq
        self.entries[entry.attempt_id] = entry

    def step(self, number: int, event: Event) -> StepDraft:
        """The step that an event belongs to, begun by the first of them."""
        step = self._steps.get(number)
        if step is None:
            span = genai.step_span(self.tenant, self.job_id, number, self.root, event.at)
            step = self._steps[number] = StepDraft(number, span)
            self.change(span, event)
        step.seq = event.seq
        self.steps[number] = step
        return step

    @property
    def open_steps(self) -> list[StepDraft]:
        """The steps that are under way."""
        return [step for step in self._steps.values() if step.span.open]

    def finish(self, step: StepDraft, event: Event) -> None:
        """An event completed a step."""
        outcome = step.outcome()
        step.close(event.at, outcome, span_status="error" if outcome == "failed" else "ok")
        self._step_over(step, event)

    def cut_off(self, step: StepDraft, event: Event, *, failed: bool, cause: str) -> None:
        """The end of its job cuts a step off."""
        state, status = ("failed", "error") if failed else ("skipped", "unset")
        for call in [call for call in step.calls.values() if call.status == "running"]:
            call.status = state
            if call.span is not None:
                call.span.close(event.at, status, error=cause)
                self.change(call.span, event)
        step.close(event.at, state, span_status=status, error=cause)
        self._step_over(step, event)

    def _step_over(self, step: StepDraft, event: Event) -> None:
        step.seq = event.seq
        self.steps[step.step] = step
        self.change(step.span, event)

    def unpark(self, event: Event) -> None:
        """The wait is over: it counts as no work for whatever was open."""
        if self.parked_at is None:
            return
        parked_ms = millis(self.parked_at, event.at)
        self.parked_at = None
        for step in self._steps.values():
            for span in (step.span, *(call.span for call in step.calls.values())):
                if span is not None and span.open:
                    span.parked_ms += parked_ms
        self.root.parked_ms += parked_ms
