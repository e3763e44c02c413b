"""What each event means for a job: a fold over its log, the same for whoever reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.chat import AssistantMessage, ChatMessage, ToolMessage, UserMessage
from wayline.contracts.jobs import SECONDS_MAX, Status
from wayline.contracts.money import JobCosts
from wayline.journal.costs import cached, plus, spent, unsettled
from wayline.journal.state import Call, Job, ModelTotals

_PLACES = {name: place for place, name in enumerate(Job._fields)}
_MISREAD = frozenset({"unknown_tool", "invalid_arguments"})


def evolve(job: Job, event: e.Event) -> Job:
    """Apply one event to a state; a type this build does not know changes nothing but the place in the log."""
    meaning = _MEANING.get(type(event))
    # Not `_replace`, which looks every field up by its name, for every event of every log.
    values = list(job)
    values[_PLACES["seq"]], values[_PLACES["at"]] = event.seq, event.at
    for name, value in (meaning(job, event) if meaning else {}).items():
        values[_PLACES[name]] = value
    return Job._make(values)


def fold(events: Iterable[e.Event], job: Job | None = None) -> Job:
    """Return the state after a history."""
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


def _routed(job: Job, event: e.JobRouted) -> Changes:
    return {
        "agent_version": event.agent_version,
        "config": event.config,
        "route": event.route,
        "limits": event.limits,
        "deadline": _deadline(job.created_at, event.limits, job.rested),
        "candidates": event.candidates,
        "attachments": event.attachments,
        "held_usd": Decimal(0) if event.held_usd is None and event.left_usd is not None else event.held_usd,
        "tried": (event.route.name,),
    }


def _deadline(created_at: datetime | None, limits: e.Limits | None, rested: timedelta) -> datetime | None:
    if created_at is None or limits is None:
        return None
    return created_at + timedelta(seconds=min(limits.max_seconds + rested.total_seconds(), SECONDS_MAX))


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
        "waited": None,
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
        changes["costs"] = unsettled(job.costs, event.unsettled)
    else:
        changes["usage"] = job.usage + event.usage
        changes["used"] = _used(job, event.usage.output)
        changes["cost_usd"] = plus(job.cost_usd, event.cost_usd)
        changes["costs"] = cached(spent(job.costs, "model", _called(job), event.cost_usd), event.saved_usd)
    return changes


def _used(job: Job, output_tokens: int) -> tuple[ModelTotals, ...]:
    """Add a call to what the job used of its model in its slot."""
    if job.route is None:
        return job.used
    now = ModelTotals(_called(job), job.route.slot)
    others = []
    for one in job.used:
        if (one.model, one.slot) == (now.model, now.slot):
            now = one
        else:
            others.append(one)
    return (*others, now.plus(output_tokens))


def _estimated(job: Job) -> int | None:
    """Return the tokens of the last prompt, as its call was recorded."""
    return sum(part.tokens for part in job.asked.prefix) if job.asked else None


def _called(job: Job) -> str:
    """Return the model whose call has ended."""
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
    """Return a message without its provider's blocks, which are bound to what stood before it."""
    verbatim = isinstance(message, AssistantMessage) and message.verbatim is not None
    return message.model_copy(update={"verbatim": None}) if verbatim else message


def _discovered(job: Job, event: e.ToolsDiscovered) -> Changes:
    return {"discovered": (*job.discovered, *event.tools)}


def _tool_requested(job: Job, event: e.ToolRequested) -> Changes:
    intent = {"key": event.key, "span": event.trace, "effect": event.effect}
    return _call(job, event.call, **intent, decision_id=None, decision=None)


def _tool_unknown(job: Job, event: e.ToolUnknown) -> Changes:
    return _call(job, event.call, decision_id=event.decision_id, expires_at=event.expires_at)


def _tool_completed(job: Job, event: e.ToolCompleted) -> Changes:
    changes = _call(job, event.call, done=event)
    if event.cost_usd is not None:
        changes["cost_usd"] = plus(job.cost_usd, event.cost_usd)
        changes["costs"] = spent(job.costs, "tool", event.tool, event.cost_usd)
    calls: tuple[Call, ...] = changes["calls"]
    if calls and all(call.done for call in calls):
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
        images=call.done.images,
        citations=call.done.citations,
        failed=call.done.status != "success",
        provider_id=call.wanted.provider_id,
    )


def _call(job: Job, number: str, **changes: Any) -> Changes:
    return {"calls": tuple(c._replace(**changes) if c.wanted.call == number else c for c in job.calls)}


def _decided(job: Job, event: e.DecisionMade) -> Changes:
    if job.waited is not None and job.waited.why == "budget" and job.waited.wait_id == event.decision_id:
        return {"unanswered": True}
    return {"calls": tuple(_decided_by(event, call) for call in job.calls)}


def _decided_by(event: e.DecisionMade, call: Call) -> Call:
    return call._replace(decision=event) if call.decision_id == event.decision_id else call


def _parked(job: Job, event: e.JobParked) -> Changes:
    return {
        "status": Status.PARKED,
        "waiting": event.waiting,
        "waited": event.waiting,
        "parked_at": event.at,
        "held_usd": job.held_usd if event.kept_usd is None else event.kept_usd,
    }


def _resumed(job: Job, event: e.JobResumed) -> Changes:
    rested = job.rested + max(event.at - job.parked_at, timedelta()) if job.parked_at else job.rested
    deadline = _deadline(job.created_at, job.limits, rested)
    return {"waiting": None, "parked_at": None, "rested": rested, "deadline": deadline}


def _cancelling(_: Job, event: e.CancelRequested) -> Changes:
    return {"cancel": event}


def _raised(_: Job, event: e.BudgetRaised) -> Changes:
    return {"budget_usd": event.budget_usd, "unanswered": False, "waited": None}


def _interrupted(job: Job) -> JobCosts:
    """Return the job's costs, including a call that was open when the job was given up."""
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
