"""Histories as an executor would write them, played against a scripted environment: no bus, no clock, no chance."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, NoteMessage, ToolCall
from wayline.contracts.jobs import Failure, Route, SubmitJob, Waiting
from wayline.contracts.models import ModelCard
from wayline.contracts.money import Usage
from wayline.contracts.tools import Effect, ToolError
from wayline.executor.decide.actions import (
    CallModel,
    Cancel,
    Classify,
    Complete,
    Correct,
    Fail,
    NoteLost,
    Park,
    Reroute,
    Resolve,
    RunTools,
)
from wayline.executor.decide.compaction import note
from wayline.executor.decide.next_action import decide
from wayline.journal import Call, Job, evolve, fold

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
TENANT, JOB_ID = "default", "j1"
ROUTE = Route(provider="p", model="m", tier="flash", reason="r", classifier="p/m")
DEAR = Route(provider="p", model="n", tier="premium", reason="r", task_type="hard")
SISTER = ModelCard(provider="p", model="s", tier="flash")
CANDIDATES = e.Candidates(
    cards=(ModelCard(provider="p", model="m", tier="flash"), SISTER),
    fallbacks=(SISTER.name,),
    tasks={"hard": DEAR, "easy": None},
)


@dataclass(frozen=True)
class Reply:
    """What the environment answers to one model call: text, or that many tool calls."""

    text: str = ""
    calls: int = 0
    fails: bool = False
    recovers: bool = False
    """The model that the job falls back to answers all the same."""


@dataclass(frozen=True)
class Environment:
    """Everything outside the job: the same question gets the same answer, however often it is asked."""

    replies: tuple[Reply, ...]
    unknown: frozenset[str] = frozenset()
    """Tool keys whose outcome nobody knows."""
    decisions: tuple[str, ...] = ("succeeded",)
    cancel_after: int | None = None
    max_steps: int = 6
    compacts: frozenset[int] = frozenset()
    """Steps before whose first call a summary takes the place of what was said."""
    waits: frozenset[int] = frozenset()
    """Steps before whose first call the budget has no room until somebody raises it."""
    json_only: bool = False
    """An answer has to be a JSON object: words are corrected."""
    task: str = ""
    """What a classifier says of the job; empty: nobody asks, `-`: it fails."""

    def reply(self, step: int) -> Reply:
        return self.replies[min(step, len(self.replies)) - 1]


@dataclass
class Play:
    """Plays a job forward from some log, as records."""

    environment: Environment
    records: list[list[e.Event]] = field(default_factory=list)
    job: Job = field(default_factory=Job)

    def note(self, kind: type[e.Event], **payload) -> e.Event:
        event = kind(
            job_id=JOB_ID,
            seq=self.job.seq + 1,
            at=EPOCH + timedelta(milliseconds=self.job.seq),
            trace=e.SpanRef(trace_id=ids.trace_id(TENANT, JOB_ID), span_id=ids.job_span(TENANT, JOB_ID)),
            **payload,
        )
        self.job = evolve(self.job, event)
        self.records[-1].append(event)
        return event

    def begin(self) -> None:
        submit = SubmitJob(tenant=TENANT, agent="a", input="why?")
        self.records.append([])
        self.note(e.JobSubmitted, tenant=TENANT, job=submit, content_hash=submit.content_hash())
        self.note(
            e.JobRouted,
            agent="a",
            agent_version=1,
            config=AgentConfig(output_schema={"type": "object"} if self.environment.json_only else None),
            route=ROUTE,
            limits=e.Limits(max_steps=self.environment.max_steps, max_seconds=1e6, max_output_tokens=10),
            candidates=CANDIDATES if self.environment.task else CANDIDATES.model_copy(update={"tasks": {}}),
        )

    def claim(self) -> None:
        self.records.append([])
        self.note(e.JobClaimed, executor="x", epoch=self.job.life.epoch + 1, owner="1:1", attempt=1)

    def run(self) -> Job:
        """Decide and do until the end; a new record begins where the executor would append one."""
        if self.job.life.ended is None:
            self.claim()
        while (action := decide(self.job)) is not None:
            if self._wants_cancel() and not isinstance(action, Cancel):
                self.note(e.CancelRequested, reason="enough", by="ann")
                continue
            self._do(action)
        return self.job

    def _wants_cancel(self) -> bool:
        after = self.environment.cancel_after
        return after is not None and self.job.model.step >= after and self.job.life.cancel is None

    def _do(self, action) -> None:
        match action:
            case CallModel(step, attempt):
                self._model(step, attempt)
            case NoteLost(asked):
                self._lost(asked)
            case Classify():
                self._classify()
            case Reroute(route, cause):
                self.note(e.JobRerouted, route=route, cause=cause)
            case Correct(text):
                self.note(e.ContextInjected, note=NoteMessage(label="CORRECTION", text=text))
            case RunTools(calls):
                self._tools(calls)
            case Resolve(call):
                assert call.decision is not None
                self.records.append([])
                self._completed(call, failed=call.decision.outcome != "succeeded")
            case Park(waiting):
                self.note(e.JobParked, waiting=waiting, signals_seen=0)
                self.claim()
                self.note(e.JobResumed)
                n = sum(isinstance(event, e.DecisionMade) for record in self.records for event in record)
                outcome = self.environment.decisions[min(n, len(self.environment.decisions) - 1)]
                self.note(e.DecisionMade, decision_id=waiting.wait_id, outcome=outcome)
            case Complete(answer, citations, partial, reason):
                self.note(e.JobCompleted, answer=answer, citations=citations, partial=partial, reason=reason)
            case Fail(error):
                self.note(e.JobFailed, error=error)
            case Cancel(reason, by):
                self.note(e.JobCancelled, reason=reason, by=by)

    def _has(self, kind: type[e.Event], *, since_step: int) -> bool:
        """Whether such an event was noted since the step before this one was over."""
        events = [event for record in self.records for event in record]
        before = [
            n for n, event in enumerate(events) if isinstance(event, e.ModelCompleted) and event.step < since_step
        ]
        return any(isinstance(event, kind) for event in events[before[-1] if before else 0 :])

    def _waited(self, step: int) -> None:
        """Park until the budget is raised, as a call does that has no room."""
        self.note(e.JobParked, waiting=Waiting(why="budget", wait_id=f"budget-{step}"), signals_seen=0)
        self.claim()
        self.note(e.JobResumed)
        self.note(e.BudgetRaised, budget_usd=Decimal(step), by="ann")

    def _compacted(self, step: int) -> None:
        """Let a summary stand for all but the first message, as the record of the next call does."""
        said = note(f"What was said before step {step}, in short.", self.job.working_context)
        self.note(e.ContextCompacted, note=said, kept=0)

    def _model(self, step: int, attempt: int) -> None:
        if step in self.environment.waits and not self._has(e.BudgetRaised, since_step=step):
            return self._waited(step)
        if step in self.environment.compacts and step > 1 and not self._has(e.ContextCompacted, since_step=step):
            self._compacted(step)
        named = {"step": step, "attempt": attempt, "attempt_id": ids.attempt_id(TENANT, JOB_ID, step, attempt)}
        route = self.job.routing.route
        assert route is not None
        self.note(e.ModelRequested, **named, provider=route.provider, model=route.model)
        self.records.append([])
        reply = self.environment.reply(step)
        if reply.fails and (not reply.recovers or route.model != SISTER.model):
            error = Failure(code="http_400", message="no")
            self.note(e.ModelFailed, **named, error=error, retryable=False)
            return None
        calls = tuple(ToolCall(call=str(n), tool="t", arguments={"step": step}) for n in range(1, reply.calls + 1))
        message = AssistantMessage(text=reply.text, tool_calls=calls)
        usage = Usage(input=10, output=2)
        self.note(
            e.ModelCompleted, **named, message=message, usage=usage, cost_usd=None, stop_reason="end", duration_ms=1
        )

    def _classify(self) -> None:
        named = {"purpose": "classification", "attempt_id": ids.aux_id(TENANT, JOB_ID, 0, self.job.model.aux_calls + 1)}
        self.note(e.AuxiliaryRequested, **named, provider="p", model="m", worst_usd=Decimal(1))
        self.records.append([])
        if self.environment.task == "-":
            self.note(e.AuxiliaryFailed, **named, error=Failure(code="timeout", message="no"))
            return
        self.note(e.AuxiliaryCompleted, **named, provider="p", model="m", cost_usd=Decimal(1))
        self.note(e.TaskClassified, task_type=self.environment.task)

    def _lost(self, asked: e.ModelRequested | e.AuxiliaryRequested) -> None:
        if isinstance(asked, e.AuxiliaryRequested):
            error = Failure(code=e.LOST, message="gone")
            self.note(e.AuxiliaryFailed, purpose=asked.purpose, attempt_id=asked.attempt_id, error=error)
            return
        named = {"step": asked.step, "attempt": asked.attempt, "attempt_id": asked.attempt_id}
        self.note(e.ModelFailed, **named, error=Failure(code=e.LOST, message="gone"), retryable=True)

    def _tools(self, calls: tuple[Call, ...]) -> None:
        for call in calls:
            again = call.decision is not None and call.decision.outcome == "retry"
            if call.key is None or again:
                key = f"{call.key}/2" if again else ids.tool_key(TENANT, JOB_ID, self.job.model.step, call.wanted.call)
                self.note(
                    e.ToolRequested,
                    step=self.job.model.step,
                    call=call.wanted.call,
                    tool="t",
                    arguments=call.wanted.arguments,
                    effect=Effect.ONCE,
                    key=key,
                )
        numbers = {call.wanted.call for call in calls}
        for call in [c for c in self.job.tools.calls if c.wanted.call in numbers]:
            self.records.append([])
            assert call.key is not None
            if call.key in self.environment.unknown:
                self.note(
                    e.ToolUnknown,
                    step=self.job.model.step,
                    call=call.wanted.call,
                    tool="t",
                    key=call.key,
                    decision_id=call.key.replace("/", "-"),
                    expires_at=EPOCH,
                )
            else:
                self._completed(call, failed=False)

    def _completed(self, call: Call, *, failed: bool) -> None:
        self.note(
            e.ToolCompleted,
            step=self.job.model.step,
            call=call.wanted.call,
            tool="t",
            status="failed" if failed else "success",
            content=f"result of {self.job.model.step}/{call.wanted.call}",
            error=ToolError(code="tool_failed", message="it did not") if failed else None,
        )


def play(environment: Environment) -> Play:
    """A whole history."""
    played = Play(environment)
    played.begin()
    played.run()
    return played


def resumed(environment: Environment, records: list[list[e.Event]]) -> Play:
    """The history that follows when every process died right after these records."""
    played = Play(environment, [list(record) for record in records])
    played.job = fold(event for record in records for event in record)
    played.run()
    return played


def outcome(job: Job) -> tuple[object, ...]:
    """What a job came to, apart from how often it was claimed and when."""
    ended = job.life.ended
    assert ended is not None
    fields = ended.model_dump(exclude={"seq", "at", "usage", "cost_usd"})
    # A cancel falls where it falls: what the model had said by then may differ.
    return fields, () if job.life.status == "cancelled" else job.conversation.messages


_replies = st.one_of(
    st.builds(Reply, text=st.just(""), calls=st.integers(1, 3)),
    st.builds(Reply, text=st.one_of(st.text(max_size=5), st.just("{}")), calls=st.just(0)),
    st.just(Reply(fails=True)),
    st.builds(Reply, text=st.text(max_size=5), fails=st.just(True), recovers=st.just(True)),
)
_keys = st.builds(
    lambda step, call: ids.tool_key(TENANT, JOB_ID, step, str(call)), st.integers(1, 4), st.integers(1, 3)
)
environments = st.builds(
    Environment,
    replies=st.lists(_replies, min_size=1, max_size=5).map(tuple),
    unknown=st.frozensets(_keys, max_size=3),
    decisions=st.lists(st.sampled_from(["succeeded", "failed", "retry", "expired"]), min_size=1, max_size=2).map(tuple),
    cancel_after=st.one_of(st.none(), st.integers(1, 4)),
    max_steps=st.integers(1, 6),
    compacts=st.frozensets(st.integers(1, 6), max_size=2),
    waits=st.frozensets(st.integers(1, 6), max_size=2),
    json_only=st.booleans(),
    task=st.sampled_from(["", "", "hard", "easy", "-"]),
)
