"""One job's log, told event by event: what it makes of the tables.

The `Job` is the fold that everybody shares; beside it stand the spans, steps and ledger entries that only tracing
needs. Everything comes from the events alone, so telling the same log again makes the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.headers import TRACEPARENT
from wayline.contracts.jobs import JobView
from wayline.contracts.money import Usage
from wayline.journal import Job, evolve, view
from wayline.telemetry import names, remote
from wayline.tracing.drafts import INTERRUPTED, CallDraft, Draft, Entry, StepDraft
from wayline.tracing.rows import JobRow, Rows, SpanRow, as_json, clean, usage_json

JOB_STATUS = "wayline.job.status"

E = TypeVar("E", bound=e.Event)


class ModelEnded(NamedTuple):
    provider: str
    model: str
    usage: Usage | None
    seconds: float


class ToolEnded(NamedTuple):
    tool: str
    effect: str
    status: str
    seconds: float


class JobEnded(NamedTuple):
    outcome: str
    agent: str
    seconds: float


Fact = ModelEnded | ToolEnded | JobEnded
"""Something that metrics count once."""


@dataclass
class Chapter:
    """What the newest events of a job changed."""

    rows: Rows = field(default_factory=Rows)
    facts: list[Fact] = field(default_factory=list)
    closed: list[SpanRow] = field(default_factory=list)
    """The spans that ended."""


class Story:
    """A job as far as its log was read."""

    def __init__(self, tenant: str, job_id: str) -> None:
        self.tenant = tenant
        self.job_id = job_id
        self.trace_id = ids.trace_id(tenant, job_id)
        self.job = Job(tenant=tenant, job_id=job_id)
        self.sequence = 0
        """The stream sequence of the last record."""
        self._root: Draft | None = None
        self._steps: dict[int, StepDraft] = {}
        self._chats: dict[str, tuple[Draft, Entry]] = {}
        self._parked_at: datetime | None = None
        self._begin_chapter()

    @property
    def seq(self) -> int:
        return self.job.seq

    @property
    def at_rest(self) -> bool:
        """Whether nothing is to come for now: it need not be kept in memory."""
        return self.job.ended is not None or self.job.waiting is not None

    def tell(self, event: e.Event) -> None:
        """Take in the next event."""
        root = self._root or self._begin(event)
        meaning = _MEANING.get(type(event))
        if meaning:
            meaning(self, event, root)
        self.job = evolve(self.job, event)

    def skip(self) -> None:
        """What was told so far is in the tables already."""
        self._begin_chapter()

    def chapter(self) -> Chapter:
        """What changed since the last chapter; what has ended is forgotten."""
        told, job = Chapter(facts=self._facts), view(self.job)
        told.rows.jobs.append(self._job_row(job))
        for span in self._changed_spans.values():
            row = span.row(tenant=self.tenant, trace_id=self.trace_id)
            told.rows.spans.append(row)
            if not span.open:
                told.closed.append(row)
        for step in self._changed_steps.values():
            told.rows.steps.append(step.row(tenant=self.tenant, job_id=self.job_id))
        for entry in self._changed_entries.values():
            told.rows.ledger.append(
                entry.row(
                    tenant=self.tenant,
                    job_id=self.job_id,
                    agent=clean(job.agent),
                    user_id=_clean(job.user_id),
                    session_id=_clean(job.session_id),
                )
            )
        self._steps = {number: step for number, step in self._steps.items() if step.span.open}
        self._begin_chapter()
        return told

    def _begin_chapter(self) -> None:
        self._changed_spans: dict[str, Draft] = {}
        self._changed_steps: dict[int, StepDraft] = {}
        self._changed_entries: dict[str, Entry] = {}
        self._facts: list[Fact] = []

    def _job_row(self, job: JobView) -> JobRow:
        route, error = job.route, job.error
        created = job.created_at or (self._root.start if self._root else None)
        assert created is not None
        return JobRow(
            tenant=self.tenant,
            job_id=self.job_id,
            seq=self.seq,
            trace_id=self.trace_id,
            status=job.status.value,
            agent=clean(job.agent),
            agent_version=job.agent_version,
            session_id=_clean(job.session_id),
            user_id=_clean(job.user_id),
            provider=route.provider if route else None,
            model=route.model if route else None,
            tier=route.tier if route else None,
            route_reason=clean(route.reason) if route else None,
            estimated_cost_usd=route.estimated_cost_usd if route else None,
            steps=job.steps,
            usage=usage_json(job.usage),
            tokens=job.usage.total,
            cost_usd=job.cost_usd,
            answer=_clean(job.answer),
            partial=job.partial,
            citations=as_json([c.model_dump() for c in job.citations]),
            error_code=error.code if error else None,
            error_message=clean(error.message) if error else None,
            waiting_for=as_json(job.waiting_for.model_dump(mode="json")) if job.waiting_for else None,
            created_at=created,
            ended_at=job.ended_at,
        )

    def _changed(self, span: Draft, event: e.Event) -> None:
        span.seq = event.seq
        self._changed_spans[span.span_id] = span

    def _step_changed(self, step: StepDraft, event: e.Event) -> None:
        step.seq = event.seq
        self._changed_steps[step.step] = step

    def _entry_changed(self, entry: Entry, event: e.Event) -> None:
        entry.seq = event.seq
        self._changed_entries[entry.attempt_id] = entry

    def _begin(self, event: e.Event) -> Draft:
        """The root: it opens with the first event, whichever that is."""
        self._root = Draft(
            span_id=ids.job_span(self.tenant, self.job_id),
            parent=None,
            name="invoke_agent",
            start=event.at,
            attributes={
                names.GEN_AI_OPERATION: "invoke_agent",
                names.TENANT: self.tenant,
                names.JOB: self.job_id,
            },
        )
        self._changed(self._root, event)
        return self._root

    def _submitted(self, event: e.JobSubmitted, root: Draft) -> None:
        root.name = f"invoke_agent {event.job.agent}"
        root.attributes[names.GEN_AI_AGENT_NAME] = event.job.agent
        if event.job.session_id:
            root.attributes[names.GEN_AI_CONVERSATION] = event.job.session_id
        caller = remote({TRACEPARENT: event.caller}) if event.caller else None
        if caller:
            root.links.append({"trace_id": f"{caller.trace_id:032x}", "span_id": f"{caller.span_id:016x}"})
        self._changed(root, event)

    def _routed(self, event: e.JobRouted, root: Draft) -> None:
        root.attributes[names.GEN_AI_AGENT_VERSION] = str(event.agent_version)
        root.attributes[names.GEN_AI_PROVIDER] = event.route.provider
        root.attributes[names.GEN_AI_REQUEST_MODEL] = event.route.model
        self._changed(root, event)

    def _claimed(self, event: e.JobClaimed, root: Draft) -> None:
        self._unpark(event, root)
        root.note("claimed", event.at, executor=event.executor, epoch=event.epoch)
        self._changed(root, event)
        # Whoever held the job is gone, and with it the call it was in: nobody will ever say what that one cost.
        self._interrupt(event, error=INTERRUPTED)

    def _interrupt(self, event: e.Event, *, error: str | None, status: str = "error") -> None:
        """Close the model calls that are under way: their outcome will not come."""
        for chat, entry in self._chats.values():
            chat.close(event.at, status, error=error)
            entry.settle(None, None)
            self._changed(chat, event)
            self._entry_changed(entry, event)
        self._chats.clear()

    def _step(self, number: int, event: e.Event, root: Draft) -> StepDraft:
        step = self._steps.get(number)
        if step is None:
            span = Draft(
                span_id=ids.step_span(self.tenant, self.job_id, number),
                parent=root.span_id,
                name=f"step {number}",
                start=event.at,
                attributes={names.STEP: number},
            )
            step = self._steps[number] = StepDraft(number, span)
            self._changed(span, event)
        self._step_changed(step, event)
        return step

    def _model_requested(self, event: e.ModelRequested, root: Draft) -> None:
        self._interrupt(event, error=INTERRUPTED)
        for step in [s for s in self._steps.values() if s.step != event.step and s.span.open]:
            self._finish_step(step, event)
        step = self._step(event.step, event, root)
        self._chats[event.attempt_id] = self._chat(event, step)

    def _chat(self, event: e.ModelRequested, step: StepDraft) -> tuple[Draft, Entry]:
        attributes: dict[str, Any] = {
            names.GEN_AI_OPERATION: "chat",
            names.GEN_AI_PROVIDER: event.provider,
            names.GEN_AI_REQUEST_MODEL: event.model,
            names.STEP: event.step,
            names.ATTEMPT: event.attempt,
        }
        span = Draft(
            span_id=ids.model_span(self.tenant, self.job_id, event.step, event.attempt),
            parent=step.span.span_id,
            name=f"chat {event.model}",
            start=event.at,
            kind="client",
            attributes=attributes,
        )
        entry = Entry(event.attempt_id, event.step, "model", event.at, provider=event.provider, model=event.model)
        self._changed(span, event)
        self._entry_changed(entry, event)
        return span, entry

    def _ended_chat(self, event: e.ModelCompleted | e.ModelFailed, root: Draft) -> tuple[Draft, Entry, StepDraft]:
        """The call that this event ends, also when its request was never read."""
        step = self._step(event.step, event, root)
        chat = self._chats.pop(event.attempt_id, None)
        if chat is None:
            route = self.job.route
            asked = e.ModelRequested(
                **event.model_dump(include={"job_id", "seq", "trace", "step", "attempt", "attempt_id"}),
                at=event.at - timedelta(milliseconds=event.duration_ms),
                provider=route.provider if route else "-",
                model=route.model if route else "-",
            )
            chat = self._chat(asked, step)
        span, entry = chat
        self._changed(span, event)
        self._entry_changed(entry, event)
        self._facts.append(
            ModelEnded(entry.provider or "-", entry.model or "-", event.usage, event.duration_ms / 1_000)
        )
        return span, entry, step

    def _model_completed(self, event: e.ModelCompleted, root: Draft) -> None:
        span, entry, step = self._ended_chat(event, root)
        span.attributes[names.GEN_AI_FINISH_REASONS] = [event.stop_reason]
        if event.first_token_ms is not None:
            span.attributes[names.GEN_AI_FIRST_CHUNK] = event.first_token_ms / 1_000
        _price(span, event.usage, event)
        span.close(event.at, "ok", took_ms=event.duration_ms)
        entry.settle(event.usage, event.cost_usd)
        step.said = event.message.text
        step.answered = True
        step.calls = {c.call: CallDraft(c.call, c.tool, c.arguments) for c in event.message.tool_calls}
        self._finish_step_when_complete(step, event)

    def _model_failed(self, event: e.ModelFailed, root: Draft) -> None:
        span, entry, _ = self._ended_chat(event, root)
        if event.usage is not None:
            _price(span, event.usage, event)
        span.close(event.at, "error", error=event.error.code, took_ms=event.duration_ms)
        entry.settle(event.usage, event.cost_usd)

    def _tool_requested(self, event: e.ToolRequested, root: Draft) -> None:
        self._call(event, root, arguments=event.arguments, effect=event.effect.value)

    def _call(
        self, event: e.ToolRequested | e.ToolCompleted, root: Draft, *, arguments: dict[str, Any], effect: str = ""
    ) -> tuple[StepDraft, CallDraft, Draft]:
        """A tool call of a step with its span, open."""
        step = self._step(event.step, event, root)
        call = step.calls.setdefault(event.call, CallDraft(event.call, event.tool, arguments))
        # A call that is made again, because a human said so, goes on in its span: the start is part of a span's row.
        span = call.span or self._tool_span(event, step)
        if effect:
            span.attributes[names.EFFECT] = effect
            span.status, span.duration_ms = "open", None
        call.span = span
        self._changed(span, event)
        return step, call, span

    def _tool_span(self, event: e.ToolRequested | e.ToolCompleted, step: StepDraft) -> Draft:
        took_ms = event.duration_ms if isinstance(event, e.ToolCompleted) else 0.0
        return Draft(
            span_id=ids.tool_span(self.tenant, self.job_id, event.step, event.call),
            parent=step.span.span_id,
            name=f"execute_tool {event.tool}",
            start=event.at - timedelta(milliseconds=took_ms),
            attributes={
                names.GEN_AI_OPERATION: "execute_tool",
                names.GEN_AI_TOOL_NAME: event.tool,
                names.GEN_AI_TOOL_CALL: event.call,
                names.GEN_AI_TOOL_TYPE: "function",
                names.STEP: event.step,
            },
        )

    def _tool_completed(self, event: e.ToolCompleted, root: Draft) -> None:
        step, call, span = self._call(event, root, arguments={})
        call.status, call.duration_ms = event.status, event.duration_ms
        call.output = event.error.message if event.error else event.content
        status = {"success": "ok", "failed": "error", "skipped": "unset"}[event.status]
        span.close(event.at, status, error=event.error.code if event.error else None, took_ms=event.duration_ms)
        if event.cost_usd is not None:
            span.cost_usd = event.cost_usd
            span.attributes[names.COST] = str(event.cost_usd)
            key = ids.tool_key(self.tenant, self.job_id, event.step, event.call)
            entry = Entry(key, event.step, "tool", event.at, tool=clean(event.tool))
            entry.settle(Usage(), event.cost_usd)
            self._entry_changed(entry, event)
        # Names that no tool has come from a model: they must not become label values without end.
        known = not (event.error and event.error.code == "unknown_tool")
        effect = str(span.attributes.get(names.EFFECT, "-"))
        self._facts.append(ToolEnded(event.tool if known else "-", effect, event.status, event.duration_ms / 1_000))
        self._finish_step_when_complete(step, event)

    def _finish_step_when_complete(self, step: StepDraft, event: e.Event) -> None:
        if step.complete:
            self._finish_step(step, event)

    def _finish_step(self, step: StepDraft, event: e.Event) -> None:
        outcome = step.outcome()
        step.close(event.at, outcome, span_status="error" if outcome == "failed" else "ok")
        self._changed(step.span, event)
        self._step_changed(step, event)

    def _parked(self, event: e.JobParked, root: Draft) -> None:
        self._parked_at = event.at
        root.note("parked", event.at, why=event.waiting.why)
        self._changed(root, event)

    def _resumed(self, event: e.JobResumed, root: Draft) -> None:
        self._unpark(event, root)
        root.note("resumed", event.at)
        self._changed(root, event)

    def _unpark(self, event: e.Event, root: Draft) -> None:
        if self._parked_at is None:
            return
        parked_ms = max(0.0, (event.at - self._parked_at) / timedelta(milliseconds=1))
        self._parked_at = None
        for span in (root, *(step.span for step in self._steps.values() if step.span.open)):
            span.parked_ms += parked_ms

    def _noted(self, event: e.CancelRequested | e.BudgetRaised | e.DecisionMade, root: Draft) -> None:
        root.note(event.type, event.at, by=event.by)
        self._changed(root, event)

    def _ended(self, event: e.JobCompleted | e.JobFailed | e.JobCancelled, root: Draft) -> None:
        self._unpark(event, root)
        error = event.error.code if isinstance(event, e.JobFailed) else None
        outcome = event.type.removeprefix("job.")
        status = {"completed": "ok", "failed": "error", "cancelled": "unset"}[outcome]
        cause = error or outcome
        self._interrupt(event, error=cause, status="error" if error else "unset")
        for step in [step for step in self._steps.values() if step.span.open]:
            self._abandon(step, event, failed=error is not None, cause=cause)
        root.attributes[JOB_STATUS] = outcome
        root.close(event.at, status, error=error)
        self._changed(root, event)
        # An agent that was never found is a word of the client's, not a label.
        agent = self.job.submitted.agent if self.job.submitted and self.job.config else "-"
        wall_ms = root.duration_ms or 0.0
        self._facts.append(JobEnded(outcome, agent, (wall_ms + root.parked_ms) / 1_000))

    def _abandon(self, step: StepDraft, event: e.Event, *, failed: bool, cause: str) -> None:
        """Close a step that the end of its job cuts off."""
        for call in step.calls.values():
            if call.status != "running":
                continue
            call.status = "failed" if failed else "skipped"
            if call.span is not None and call.span.open:
                call.span.close(event.at, "error" if failed else "unset", error=cause)
                self._changed(call.span, event)
        step.close(event.at, "failed" if failed else "skipped", span_status="error" if failed else "unset", error=cause)
        self._changed(step.span, event)
        self._step_changed(step, event)


def _price(span: Draft, usage: Usage, event: e.ModelCompleted | e.ModelFailed) -> None:
    span.usage = usage
    span.cost_usd = event.cost_usd
    written = usage.cache_write_5m + usage.cache_write_1h
    said = {
        names.GEN_AI_INPUT_TOKENS: usage.input,
        names.GEN_AI_OUTPUT_TOKENS: usage.output,
        # Both spellings: readers in the field know one or the other.
        **({names.GEN_AI_CACHE_WRITE: written, names.GEN_AI_CACHE_CREATION: written} if written else {}),
        **({names.GEN_AI_CACHE_READ: usage.cache_read} if usage.cache_read else {}),
        **({names.GEN_AI_REASONING: usage.reasoning} if usage.reasoning else {}),
    }
    span.attributes |= said
    if event.cost_usd is not None:
        span.attributes[names.COST] = str(event.cost_usd)


def _clean(text: str | None) -> str | None:
    return None if text is None else clean(text)


_MEANING: dict[type[e.Event], Callable[[Story, Any, Draft], None]] = {
    e.JobSubmitted: Story._submitted,
    e.JobRouted: Story._routed,
    e.JobClaimed: Story._claimed,
    e.ModelRequested: Story._model_requested,
    e.ModelCompleted: Story._model_completed,
    e.ModelFailed: Story._model_failed,
    e.ToolRequested: Story._tool_requested,
    e.ToolCompleted: Story._tool_completed,
    e.DecisionMade: Story._noted,
    e.JobParked: Story._parked,
    e.JobResumed: Story._resumed,
    e.CancelRequested: Story._noted,
    e.BudgetRaised: Story._noted,
    e.JobCompleted: Story._ended,
    e.JobFailed: Story._ended,
    e.JobCancelled: Story._ended,
}
