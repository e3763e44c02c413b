"""What a job is at some point of its log: a fold over events, the same for whoever reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
from wayline.contracts.jobs import Failure, Route, Status, SubmitJob, Waiting
from wayline.contracts.models import ModelCard
from wayline.contracts.money import JobCosts, Usage
from wayline.contracts.tools import Effect, ToolDefinition
from wayline.journal.costs import cached, plus, spent, unsettled

_NOTHING = Usage()
_NO_CANDIDATES = e.Candidates()
_NO_COSTS = JobCosts()


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the current step and how far it is."""

    wanted: ToolCall
    key: str | None = None
    """Set once the intent is in the log."""
    effect: Effect | None = None
    decision_id: str | None = None
    """Set when the outcome is unknown and a human was asked."""
    expires_at: datetime | None = None
    decision: e.DecisionMade | None = None
    done: e.ToolCompleted | None = None

    @property
    def undecided(self) -> bool:
        return self.decision_id is not None and self.decision is None and self.done is None


@dataclass(frozen=True)
class Job:
    """A job's state; begins empty and changes only through `evolve`."""

    job_id: str = ""
    tenant: str = ""
    seq: int = 0
    at: datetime | None = None
    status: Status = Status.QUEUED
    submitted: SubmitJob | None = None
    reply_to: str | None = None
    created_at: datetime | None = None
    ended_at: datetime | None = None
    agent_version: int | None = None
    config: AgentConfig | None = None
    route: Route | None = None
    limits: e.Limits | None = None
    candidates: e.Candidates = _NO_CANDIDATES
    epoch: int = 0

    messages: tuple[ChatMessage, ...] = ()
    tools: tuple[ToolDefinition, ...] | None = None
    step: int = 0
    """The number of the last model request's step, from 1."""
    model_open: e.ModelRequested | None = None
    """A model call whose end is not in the log."""
    model_failed: e.ModelFailed | None = None
    """The last model call, if it failed and was not repeated."""
    model_attempt: int = 0
    calls: tuple[Call, ...] = ()

    usage: Usage = _NOTHING
    cost_usd: Decimal | None = Decimal(0)
    costs: JobCosts = _NO_COSTS
    budget_usd: Decimal | None = None
    cancel: e.CancelRequested | None = None
    waiting: Waiting | None = None
    ended: e.JobCompleted | e.JobFailed | e.JobCancelled | None = None

    @property
    def error(self) -> Failure | None:
        return self.ended.error if isinstance(self.ended, e.JobFailed) else None

    @property
    def card(self) -> ModelCard:
        """What is known of the model that the job is routed to; little, where the router knew no more."""
        assert self.route is not None
        known = self.candidates.card(self.route.name)
        return known or ModelCard(provider=self.route.provider, model=self.route.model, tier=self.route.tier)

    @property
    def last_said(self) -> AssistantMessage | None:
        """The newest message of the model."""
        return next((m for m in reversed(self.messages) if isinstance(m, AssistantMessage)), None)


def evolve(job: Job, event: e.Event) -> Job:
    """What one event means; a type this build does not know changes nothing but the place in the log."""
    meaning = _MEANING.get(type(event))
    changes = meaning(job, event) if meaning else {}
    # Not `dataclasses.replace`: it runs the constructor over every field, for every event of every log.
    after = object.__new__(Job)
    vars(after).update(vars(job))
    vars(after).update(changes, seq=event.seq, at=event.at)
    return after


def fold(events: Iterable[e.Event], job: Job | None = None) -> Job:
    """The state after a history."""
    return reduce(evolve, events, job or Job())


Changes = dict[str, Any]


def _submitted(_: Job, event: e.JobSubmitted) -> Changes:
    return {
        "job_id": event.job_id,
        "tenant": event.tenant,
        "submitted": event.job,
        "reply_to": event.reply_to,
        "created_at": event.at,
        "budget_usd": event.job.options.budget_usd,
        "messages": (UserMessage(parts=event.job.parts(), style=event.job.options.style),),
    }


def _routed(_: Job, event: e.JobRouted) -> Changes:
    return {
        "agent_version": event.agent_version,
        "config": event.config,
        "route": event.route,
        "limits": event.limits,
        "candidates": event.candidates,
    }


def _rerouted(_: Job, event: e.JobRerouted) -> Changes:
    return {"route": event.route}


def _claimed(job: Job, event: e.JobClaimed) -> Changes:
    # A call that was open when its holder died stays unanswered: the new holder makes a new attempt.
    return {"status": Status.RUNNING, "epoch": event.epoch, "model_open": None, "costs": _interrupted(job)}


def _interrupted(job: Job) -> JobCosts:
    """The job's costs, with a call in them that is open and whose end will not come."""
    if job.model_open is None:
        return job.costs
    return unsettled(job.costs, e.Bounds(lower_usd=Decimal(0), upper_usd=job.model_open.worst_usd))


def _model_requested(job: Job, event: e.ModelRequested) -> Changes:
    return {
        "step": event.step,
        "model_open": event,
        "costs": _interrupted(job),
        "model_failed": None,
        "model_attempt": event.attempt,
        "tools": job.tools if event.tools is None else event.tools,
    }


def _model_completed(job: Job, event: e.ModelCompleted) -> Changes:
    return {
        "messages": (*job.messages, event.message),
        "model_open": None,
        "model_attempt": 0,
        "calls": tuple(Call(wanted=wanted) for wanted in event.message.tool_calls),
        "usage": job.usage + event.usage,
        "cost_usd": plus(job.cost_usd, event.cost_usd),
        "costs": cached(spent(job.costs, "model", _called(job), event.cost_usd), event.saved_usd),
    }


def _called(job: Job) -> str:
    """The model whose call has ended."""
    if job.model_open is not None:
        return f"{job.model_open.provider}/{job.model_open.model}"
    return job.route.name if job.route else "-"


def _model_failed(job: Job, event: e.ModelFailed) -> Changes:
    changes: Changes = {"model_open": None, "model_failed": event}
    if event.usage is not None:
        changes |= {
            "usage": job.usage + event.usage,
            "cost_usd": plus(job.cost_usd, event.cost_usd),
            "costs": spent(job.costs, "model", _called(job), event.cost_usd),
        }
    elif event.unsettled is not None:
        changes["costs"] = unsettled(job.costs, event.unsettled)
    return changes


def _aux_completed(job: Job, event: e.AuxiliaryCompleted) -> Changes:
    return {
        "usage": job.usage + event.usage,
        "cost_usd": plus(job.cost_usd, event.cost_usd),
        "costs": spent(job.costs, "aux", event.purpose, event.cost_usd),
    }


def _injected(job: Job, event: e.ContextInjected) -> Changes:
    return {"messages": (*job.messages, event.note)}


def _tool_requested(job: Job, event: e.ToolRequested) -> Changes:
    return _call(job, event.call, key=event.key, effect=event.effect, decision_id=None, decision=None)


def _tool_unknown(job: Job, event: e.ToolUnknown) -> Changes:
    return _call(job, event.call, decision_id=event.decision_id, expires_at=event.expires_at)


def _tool_completed(job: Job, event: e.ToolCompleted) -> Changes:
    changes = _call(job, event.call, done=event)
    if event.cost_usd is not None:
        changes["cost_usd"] = plus(job.cost_usd, event.cost_usd)
        changes["costs"] = spent(job.costs, "tool", event.tool, event.cost_usd)
    calls: tuple[Call, ...] = changes["calls"]
    if all(call.done for call in calls):
        # The model is shown the results in the order it asked for them, whichever ended first.
        changes["messages"] = (*job.messages, *(_shown(call) for call in calls))
        changes["calls"] = ()
    return changes


def _shown(call: Call) -> ToolMessage:
    assert call.done is not None
    return ToolMessage(
        call=call.wanted.call,
        tool=call.wanted.tool,
        content=call.done.content if call.done.error is None else call.done.error.message,
        citations=call.done.citations,
        failed=call.done.status != "success",
        provider_id=call.wanted.provider_id,
    )


def _call(job: Job, number: str, **changes: Any) -> Changes:
    return {"calls": tuple(replace(c, **changes) if c.wanted.call == number else c for c in job.calls)}


def _decided(job: Job, event: e.DecisionMade) -> Changes:
    return {"calls": tuple(replace(c, decision=event) if c.decision_id == event.decision_id else c for c in job.calls)}


def _parked(_: Job, event: e.JobParked) -> Changes:
    return {"status": Status.PARKED, "waiting": event.waiting}


def _resumed(_: Job, event: e.JobResumed) -> Changes:
    return {"waiting": None}


def _cancelling(_: Job, event: e.CancelRequested) -> Changes:
    return {"cancel": event}


def _raised(_: Job, event: e.BudgetRaised) -> Changes:
    return {"budget_usd": event.budget_usd}


def _ended(status: Status) -> Callable[[Job, Any], Changes]:
    return lambda job, event: {
        "status": status,
        "ended": event,
        "ended_at": event.at,
        "waiting": None,
        "costs": _interrupted(job),
    }


_MEANING: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.JobSubmitted: _submitted,
    e.JobRouted: _routed,
    e.JobRerouted: _rerouted,
    e.JobClaimed: _claimed,
    e.ModelRequested: _model_requested,
    e.ModelCompleted: _model_completed,
    e.ModelFailed: _model_failed,
    e.AuxiliaryCompleted: _aux_completed,
    e.ContextInjected: _injected,
    e.ToolRequested: _tool_requested,
    e.ToolUnknown: _tool_unknown,
    e.ToolCompleted: _tool_completed,
    e.DecisionMade: _decided,
    e.JobParked: _parked,
    e.JobResumed: _resumed,
    e.CancelRequested: _cancelling,
    e.BudgetRaised: _raised,
    e.JobCompleted: _ended(Status.COMPLETED),
    e.JobFailed: _ended(Status.FAILED),
    e.JobCancelled: _ended(Status.CANCELLED),
}
