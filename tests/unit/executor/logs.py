"""Short logs for the tests of the executor's thinking: events one after another, a second apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, Attachment, ToolCall
from wayline.contracts.jobs import Failure, JobOptions, Route, SubmitJob
from wayline.contracts.models import ModelCard, Prices, Rates
from wayline.contracts.money import Usage
from wayline.contracts.tools import Effect, ToolError
from wayline.executor.decide.actions import Action
from wayline.executor.decide.next_action import decide
from wayline.journal import Job, fold

AT = datetime(2026, 1, 1, tzinfo=UTC)
TRACE = e.SpanRef(trace_id="0" * 32, span_id="0" * 16)
CHEAP = Prices(rates=Rates(input=Decimal(1), output=Decimal(2)))
DEAR = Prices(rates=Rates(input=Decimal(10), output=Decimal(20)))


def card(name: str, prices: Prices | None = CHEAP, **more: Any) -> ModelCard:
    provider, _, model = name.partition("/")
    return ModelCard(provider=provider, model=model, tier="standard", prices=prices, **more)


PRIMARY, SISTER, OTHER = card("acme/primary"), card("acme/sister"), card("other/spare")
STRONG, SMALL = card("acme/strong", DEAR), card("tiny/small")
ROUTE = Route(provider="acme", model="primary", tier="standard", reason="r", slot="primary")


@dataclass
class Log:
    """A job's log so far, and what is decided from it."""

    config: AgentConfig = field(default_factory=AgentConfig)
    input: str = "why?"
    options: JobOptions = field(default_factory=JobOptions)
    cards: tuple[ModelCard, ...] = (PRIMARY, SISTER, OTHER, STRONG, SMALL)
    fallbacks: tuple[str, ...] = ()
    slots: dict[Any, str] = field(default_factory=lambda: {"primary": "acme/primary"})
    max_steps: int = 9
    held_usd: Decimal | None = None
    context_level: Any = None
    observed: tuple[e.Observed, ...] = ()
    budget_usd: Decimal | None = None
    """What its limits say, whoever set it."""
    attachments: tuple[Attachment, ...] = ()
    events: list[e.Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        job = SubmitJob(tenant="default", agent="a", input=self.input, options=self.options)
        self.say(e.JobSubmitted, tenant="default", job=job, content_hash="c")
        self.say(
            e.JobRouted,
            agent="a",
            agent_version=1,
            config=self.config,
            route=ROUTE,
            limits=e.Limits(
                max_steps=self.max_steps,
                max_seconds=600,
                max_output_tokens=100,
                budget_usd=self.budget_usd,
                context_level=self.context_level,
            ),
            candidates=e.Candidates(
                cards=self.cards, slots=self.slots, fallbacks=self.fallbacks, observed=self.observed
            ),
            held_usd=self.held_usd,
            attachments=self.attachments,
        )
        self.say(e.JobClaimed, executor="x", epoch=1, owner="1:1", attempt=1)

    def say(self, kind: type[e.Event], **fields: Any) -> Log:
        seq = len(self.events) + 1
        self.events.append(kind(job_id="j", seq=seq, at=AT + timedelta(seconds=seq), trace=TRACE, **fields))
        return self

    @property
    def job(self) -> Job:
        return fold(self.events)

    @property
    def next(self) -> Action | None:
        return decide(self.job)

    def ask(self, step: int = 1, attempt: int = 1, **more: Any) -> Log:
        route = self.job.routing.route
        assert route is not None
        named = {"step": step, "attempt": attempt, "attempt_id": ids.attempt_id("default", "j", step, attempt)}
        return self.say(e.ModelRequested, **named, provider=route.provider, model=route.model, **more)

    def fail(self, code: str, *, message: str = "no", retryable: bool = True, **more: Any) -> Log:
        """The call that is open ends in an error."""
        error = Failure(code=code, message=message)
        return self.say(e.ModelFailed, **self._open(), error=error, retryable=retryable, **more)

    def failing(self, code: str, step: int = 1, attempt: int = 1, **more: Any) -> Log:
        return self.ask(step, attempt).fail(code, **more)

    def answer(self, text: str = "", *tools: str, stop: str = "end", **fields: Any) -> Log:
        """The call that is open ends in a message."""
        calls = tuple(ToolCall(call=str(n), tool=tool) for n, tool in enumerate(tools, 1))
        return self.say(
            e.ModelCompleted,
            **self._open(),
            message=AssistantMessage(text=text, tool_calls=calls, **fields),
            usage=Usage(input=10, output=2),
            cost_usd=Decimal("0.5"),
            stop_reason=stop,
            duration_ms=1,
        )

    def result(self, call: str = "1", *, error: str | None = None) -> Log:
        named = {"step": self.job.model.step, "call": call, "tool": "t"}
        self.say(e.ToolRequested, **named, arguments={}, effect=Effect.READ, key=f"k{self.job.model.step}{call}")
        why = ToolError(code=error, message="no") if error else None
        status = "failed" if error else "success"
        return self.say(e.ToolCompleted, **named, status=status, content="found", error=why)

    def take(self, action: Any) -> Log:
        """Do what was decided, where that is only to note it."""
        if hasattr(action, "route"):
            self.say(e.JobRerouted, route=action.route, cause=action.cause)
        text = getattr(action, "text", getattr(action, "note", None))
        return self.say(e.ContextInjected, note={"label": "CORRECTION", "text": text}) if text else self

    def _open(self) -> dict[str, Any]:
        asked = self.job.model.open
        assert asked is not None
        return {"step": asked.step, "attempt": asked.attempt, "attempt_id": asked.attempt_id}
