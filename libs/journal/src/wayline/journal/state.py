"""What a job is at some point of its log: a fold over events, the same for whoever reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

import orjson

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, Attachment, ChatMessage, ToolCall, ToolMessage, UserMessage
from wayline.contracts.jobs import SECONDS_MAX, Failure, Route, Status, SubmitJob, Waiting
from wayline.contracts.models import ModelCard
from wayline.contracts.money import JobCosts, Usage
from wayline.contracts.tools import USE_TOOL, Effect, ToolDefinition
from wayline.journal.costs import cached, plus, spent, unsettled

_NOTHING = Usage()
_NO_CANDIDATES = e.Candidates()
_NO_COSTS = JobCosts()
_MISREAD = frozenset({"unknown_tool", "invalid_arguments"})


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
    def meant(self) -> ToolCall:
        """The call of the tool itself, also where the model went through `use_tool`.

        What cannot be read as one stays what it is, and is answered with what is wrong with it.
        """
        wanted = self.wanted
        if wanted.tool != USE_TOOL:
            return wanted
        name, arguments = wanted.arguments.get("name"), wanted.arguments.get("arguments", {})
        if isinstance(arguments, str):
            # Some models write the inner object as text.
            with suppress(ValueError):
                arguments = orjson.loads(arguments)
        if not isinstance(name, str) or not name or not isinstance(arguments, dict):
            return wanted
        return wanted.model_copy(update={"tool": name, "arguments": arguments})

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

    attachments: tuple[Attachment, ...] = ()
    """The documents that its messages and its agent name."""
    messages: tuple[ChatMessage, ...] = ()
    tools: tuple[ToolDefinition, ...] | None = None
    """The tools of every prompt, as they were at the first call."""
    discovered: tuple[ToolDefinition, ...] = ()
    """Tools that the model was told of later, oldest first; a name may come again with another definition."""
    asked: e.ModelRequested | None = None
    """The last model call, whatever became of it."""
    compacted: bool = False
    """Whether messages gave way to a summary since the last model call."""
    prompt_tokens: int | None = None
    """What the provider counted when the model last spoke, its words included, else about what it was sent; None: the
    history is another now."""
    compacting_at: int | None = None
    """The step after which a summary was last asked for, whatever came of it."""
    step: int = 0
    """The number of the last model request's step, from 1."""
    model_open: e.ModelRequested | None = None
    """A model call whose end is not in the log: it is under way, or its holder was killed."""
    model_failed: e.ModelFailed | None = None
    """The last model call, if it failed and was not repeated."""
    aux_open: e.AuxiliaryRequested | None = None
    """An auxiliary call whose end is not in the log."""
    aux_calls: int = 0
    """Auxiliary calls that were begun."""
    classified: bool = False
    """Whether its type of task was asked for: once, whatever came of it."""
    model_attempt: int = 0
    failures: int = 0
    """Failed calls of this model in a row; those that were only lost are not counted."""
    stop_reason: str = ""
    """Why the model stopped when it last said something."""
    tried: tuple[str, ...] = ()
    """Every model the job was routed to, as `provider/model`."""
    escalated: bool = False
    misread: int = 0
    """Steps in a row of which every tool call was refused for its name or its arguments."""
    calls: tuple[Call, ...] = ()

    usage: Usage = _NOTHING
    cost_usd: Decimal | None = Decimal(0)
    costs: JobCosts = _NO_COSTS
    """What `cost_usd` is made of, and what calls whose usage never arrived may have cost beside it."""
    held_usd: Decimal | None = None
    """What is held for the job, spent and unspent together; None: no budget counts it."""
    budget_usd: Decimal | None = None
    cancel: e.CancelRequested | None = None
    waiting: Waiting | None = None
    waited: Waiting | None = None
    """What it last waited for."""
    unanswered: bool = False
    """Nobody raised the budget while the job waited for it."""
    parked_at: datetime | None = None
    rested: timedelta = timedelta()
    """How long it was parked in all."""
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

    def tool(self, name: str) -> ToolDefinition | None:
        """The newest definition of a tool that the model knows of."""
        known = (tool for tools in (reversed(self.discovered), self.tools or ()) for tool in tools)
        return next((tool for tool in known if tool.name == name), None)

    @property
    def deadline(self) -> datetime | None:
        """When its time is over; the time that it was parked is not its own."""
        if self.created_at is None or self.limits is None:
            return None
        seconds = min(self.limits.max_seconds + self.rested.total_seconds(), SECONDS_MAX)
        return self.created_at + timedelta(seconds=seconds)

    @property
    def spent_usd(self) -> Decimal | None:
        """The most it can have cost by now; None: a price is unknown."""
        return plus(self.cost_usd, self.costs.unsettled_upper_usd)

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
        "messages": (UserMessage(parts=event.job.parts(), style=event.job.options.style, sent_at=event.at),),
    }


def _routed(_: Job, event: e.JobRouted) -> Changes:
    return {
        "agent_version": event.agent_version,
        "config": event.config,
        "route": event.route,
        "limits": event.limits,
        "candidates": event.candidates,
        "attachments": event.attachments,
        "held_usd": Decimal(0) if event.held_usd is None and event.left_usd is not None else event.held_usd,
        "tried": (event.route.name,),
    }


def _rerouted(job: Job, event: e.JobRerouted) -> Changes:
    return {
        "route": event.route,
        "tried": (*job.tried, event.route.name),
        "escalated": job.escalated or event.cause == "escalation",
        "model_failed": None,
        "failures": 0,
        "misread": 0,
    }


def _claimed(job: Job, event: e.JobClaimed) -> Changes:
    return {"status": Status.RUNNING, "epoch": event.epoch}


def _model_requested(job: Job, event: e.ModelRequested) -> Changes:
    return {
        "step": event.step,
        "model_open": event,
        "asked": event,
        "compacted": False,
        "model_failed": None,
        "model_attempt": event.attempt,
        "tools": job.tools if event.tools is None else event.tools,
        "held_usd": job.held_usd if event.held_usd is None else event.held_usd,
    }


def _model_completed(job: Job, event: e.ModelCompleted) -> Changes:
    changes: Changes = {
        "messages": (*job.messages, event.message),
        "model_open": None,
        "model_attempt": 0,
        "failures": 0,
        "stop_reason": event.stop_reason,
        "prompt_tokens": event.usage.total or _estimated(job),
        "calls": tuple(Call(wanted=wanted) for wanted in event.message.tool_calls),
    }
    if event.unsettled is not None:
        return changes | {"costs": unsettled(job.costs, event.unsettled)}
    return changes | {
        "usage": job.usage + event.usage,
        "cost_usd": plus(job.cost_usd, event.cost_usd),
        "costs": cached(spent(job.costs, "model", _called(job), event.cost_usd), event.saved_usd),
    }


def _estimated(job: Job) -> int | None:
    """Tokens of the last prompt, as its call was written down."""
    return sum(part.tokens for part in job.asked.prefix) if job.asked else None


def _called(job: Job) -> str:
    """The model whose call has ended."""
    if job.model_open is not None:
        return f"{job.model_open.provider}/{job.model_open.model}"
    return job.route.name if job.route else "-"


def _model_failed(job: Job, event: e.ModelFailed) -> Changes:
    changes: Changes = {"model_open": None, "model_failed": event}
    if event.error.code != e.LOST:
        changes["failures"] = job.failures + 1
    if event.usage is not None:
        changes |= {
            "usage": job.usage + event.usage,
            "cost_usd": plus(job.cost_usd, event.cost_usd),
            "costs": spent(job.costs, "model", _called(job), event.cost_usd),
        }
    elif event.unsettled is not None:
        changes["costs"] = unsettled(job.costs, event.unsettled)
    return changes


def _aux_requested(job: Job, event: e.AuxiliaryRequested) -> Changes:
    return {
        "aux_open": event,
        "aux_calls": job.aux_calls + 1,
        "classified": job.classified or event.purpose == "classification",
        "compacting_at": job.step if event.purpose == "compaction" else job.compacting_at,
        "held_usd": job.held_usd if event.held_usd is None else event.held_usd,
    }


def _aux_ended(job: Job, event: e.AuxiliaryCompleted | e.AuxiliaryFailed) -> Changes:
    changes: Changes = {"aux_open": None}
    if event.purpose == "compaction":
        changes["compacting_at"] = job.step
    if event.unsettled is not None:
        changes["costs"] = unsettled(job.costs, event.unsettled)
    elif event.usage is not None:
        changes |= {
            "usage": job.usage + event.usage,
            "cost_usd": plus(job.cost_usd, event.cost_usd),
            "costs": spent(job.costs, "aux", event.purpose, event.cost_usd),
        }
    return changes


def _classified(job: Job, event: e.TaskClassified) -> Changes:
    route = job.route and job.route.model_copy(update={"task_type": event.task_type})
    return {"classified": True, "route": route}


def _injected(job: Job, event: e.ContextInjected) -> Changes:
    return {"messages": (*job.messages, event.note)}


def _compacted(job: Job, event: e.ContextCompacted) -> Changes:
    first, kept = job.messages[:1], job.messages[max(1, len(job.messages) - event.kept) :]
    return {"messages": (*first, event.note, *map(_unbound, kept)), "compacted": True, "prompt_tokens": None}


def _unbound(message: ChatMessage) -> ChatMessage:
    """A message as our own fields say it: its provider's blocks are bound to what stood before it."""
    verbatim = isinstance(message, AssistantMessage) and message.verbatim is not None
    return message.model_copy(update={"verbatim": None}) if verbatim else message


def _discovered(job: Job, event: e.ToolsDiscovered) -> Changes:
    return {"discovered": (*job.discovered, *event.tools)}


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
        misread = all(call.done and call.done.error and call.done.error.code in _MISREAD for call in calls)
        changes["misread"] = job.misread + 1 if misread else 0
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
    if job.waited is not None and job.waited.why == "budget" and job.waited.wait_id == event.decision_id:
        return {"unanswered": True}
    return {"calls": tuple(replace(c, decision=event) if c.decision_id == event.decision_id else c for c in job.calls)}


def _parked(job: Job, event: e.JobParked) -> Changes:
    return {
        "status": Status.PARKED,
        "waiting": event.waiting,
        "waited": event.waiting,
        "parked_at": event.at,
        "held_usd": job.held_usd if event.kept_usd is None else event.kept_usd,
    }


def _resumed(job: Job, event: e.JobResumed) -> Changes:
    rested = event.at - job.parked_at if job.parked_at else timedelta()
    return {"waiting": None, "parked_at": None, "rested": job.rested + max(rested, timedelta())}


def _cancelling(_: Job, event: e.CancelRequested) -> Changes:
    return {"cancel": event}


def _raised(_: Job, event: e.BudgetRaised) -> Changes:
    return {"budget_usd": event.budget_usd, "unanswered": False}


def _interrupted(job: Job) -> JobCosts:
    """The job's costs, with a call in them that was open when the job was given up."""
    asked = job.model_open or job.aux_open
    if asked is None:
        return job.costs
    return unsettled(job.costs, e.Bounds(lower_usd=Decimal(0), upper_usd=asked.worst_usd))


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
    e.AuxiliaryRequested: _aux_requested,
    e.AuxiliaryCompleted: _aux_ended,
    e.AuxiliaryFailed: _aux_ended,
    e.TaskClassified: _classified,
    e.ContextInjected: _injected,
    e.ContextCompacted: _compacted,
    e.ToolsDiscovered: _discovered,
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
