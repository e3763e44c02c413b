"""Which tools the model knows after each event, and how far the calls of its step are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.framed_words import unframed
from wayline.contracts.jobs import TaintSource
from wayline.contracts.tools import TASK_TOOLS, ToolDefinition
from wayline.journal.calls import Approval, Call, RecordedResult
from wayline.journal.repeats import counted
from wayline.journal.state import Changes, Job
from wayline.journal.strangers import stranger_of

RECORDED_MAX = 64
"""Results of tools for planning that are kept of one job; of more the newest."""
RECORDED_MAX_CHARS = 2_000_000
"""Of all of them together."""
_MISREAD = frozenset({"unknown_tool", "invalid_arguments"})
RAN = frozenset({"tool_failed", "timeout"})
"""Errors of a tool that was called."""


def _submitted(_: Job, event: e.JobSubmitted) -> Changes:
    """Take over what may stand in the task: its parent had read the words of strangers."""
    parent = event.parent
    if parent is None or not parent.tainted_by:
        return {}
    return {"taint": TaintSource(kind="parent", name=parent.tainted_by, job_id=parent.job_id)}


def _client_given(_: Job, event: e.ClientToolsGiven) -> Changes:
    return {"client": event.tools}


def _child_started(job: Job, event: e.ChildStarted) -> Changes:
    return {"calls": _with(job, event.call, child_id=event.child_id)}


def _rerouted(job: Job, _: e.JobRerouted) -> Changes:
    return {"misread": 0}


def _model_requested(job: Job, event: e.ModelRequested) -> Changes:
    offered: Changes = {} if event.tools is None else _offered(job, event.tools, event.deferred_tokens)
    if event.absent:
        offered |= {"absent": event.absent}
    # What a prompt has held is never another one later.
    if job.tools.unranked:
        offered |= {"unranked": (), "rank_asked": ()}
    return offered | {"shortened": ()} if job.tools.shortened else offered


def _offered(job: Job, tools: tuple[ToolDefinition, ...], deferred_tokens: int) -> Changes:
    """Take the tools of every prompt, which are newer than what another version of the agent had found."""
    names = {tool.name for tool in tools}
    discovered = tuple(tool for tool in job.tools.discovered if tool.name not in names)
    return {"offered": tools, "discovered": discovered, "deferred_tokens": deferred_tokens}


def _aux_asked(job: Job, event: e.AuxiliaryRequested | e.AuxiliaryFailed) -> Changes:
    """Note that a summary, an order or a query was asked for, or could not be: each is asked for once."""
    if event.purpose == "rewrite" and event.about is not None:
        return {"calls": _with(job, event.about.rpartition("/")[2], rewrite_asked=True)}
    if event.purpose == "rerank" and event.about is not None:
        return {"rank_asked": (*job.tools.rank_asked, event.about)}
    if event.purpose != "summary" or event.about is None:
        return {}
    call = event.about.rpartition("/")[2]
    return {"shortened": tuple(other for other in job.tools.shortened if other != call)}


def _asked(job: Job, event: e.ModelCompleted) -> Changes:
    calls = tuple(Call(wanted=wanted) for wanted in event.message.tool_calls)
    if job.tools.searched:
        calls = tuple(call._replace(unloaded=job.tools.definition(call.meant.tool) is None) for call in calls)
    return {"calls": calls, "approvals": ()}


def _discovered(job: Job, event: e.ToolsDiscovered) -> Changes:
    return {"discovered": (*job.tools.discovered, *event.tools)}


def _continued(job: Job, event: e.SessionContinued) -> Changes:
    tools: Changes = {"discovered": event.discovered}
    if event.tools is not None:
        tools |= {"offered": event.tools, "deferred_tokens": event.deferred_tokens}
    # A document that the job itself was given has tainted it before.
    if event.tainted_by is not None and job.tools.taint is None:
        before = event.after.job_id if event.after is not None else None
        tools["taint"] = TaintSource(kind="session", name=event.tainted_by, job_id=before)
    return tools


def _requested(job: Job, event: e.ToolRequested) -> Changes:
    intent: Changes = {"key": event.key, "span": event.trace, "effect": event.effect}
    if event.expires_at is not None:
        intent["expires_at"] = event.expires_at
    retried = next((call.retries for call in job.tools.calls if call.wanted.call == event.call), 0)
    calls = _with(job, event.call, **intent, decision_id=None, decision=None, retried=retried)
    return {"calls": calls, "approvals": _spent(job, event.call) if job.tools.approvals else ()}


def _spent(job: Job, number: str) -> tuple[Approval, ...]:
    """Spend a call's approvals: each holds for one call."""
    return tuple(one._replace(spent=True) if one.asked.call == number else one for one in job.tools.approvals)


def _spent_at_end(job: Job, number: str) -> tuple[Approval, ...]:
    """Spend the approvals of a call that has ended, and with a program those that its calls still waited for."""
    ended = (number, *(call.wanted.call for call in job.code.program_calls if number == job.code.program))
    return tuple(one._replace(spent=True) if one.asked.call in ended else one for one in job.tools.approvals)


def _approval_requested(job: Job, event: e.ApprovalRequested) -> Changes:
    return {"approvals": (*_spent(job, event.call), Approval(event))}


def _approval_decided(job: Job, event: e.ApprovalDecided) -> Changes:
    return {"approvals": tuple(_decided_approval(event, one) for one in job.tools.approvals)}


def _decided_approval(event: e.ApprovalDecided, one: Approval) -> Approval:
    first = one.asked.approval_id == event.approval_id and one.decided is None
    return one._replace(decided=event) if first else one


def _unknown(job: Job, event: e.ToolUnknown) -> Changes:
    calls = _with(job, event.call, decision_id=event.decision_id, expires_at=event.expires_at)
    return {"calls": calls}


def _completed(job: Job, event: e.ToolCompleted) -> Changes:
    changes: Changes = {}
    if job.tools.approvals:
        changes["approvals"] = _spent_at_end(job, event.call)
    for change in (_counted, _ran, _tainted, _shortened, _unranked, _recorded, _ended):
        changes.update(change(job, event))
    return changes


def _ended(job: Job, event: e.ToolCompleted) -> Changes:
    """Note the end of a call; with the last one the step has no calls any more."""
    calls = job.tools.calls
    if not calls or not is_last(job, event):
        return {"calls": _with(job, event.call, done=event)}
    errors = [(call.done or event).error for call in calls]
    misread = all(error is not None and error.code in _MISREAD for error in errors)
    return {"calls": (), "misread": job.tools.misread + 1 if misread else 0}


def is_last(job: Job, event: e.ToolCompleted) -> bool:
    """Return whether no call of the step is open once this one has ended."""
    return all(call.done is not None or call.wanted.call == event.call for call in job.tools.calls)


def _shortened(job: Job, event: e.ToolCompleted) -> Changes:
    """Note a result of which the model is shown less than all."""
    short = event.full is not None and event.error is None
    return {"shortened": (*job.tools.shortened, event.call)} if short else {}


def _unranked(job: Job, event: e.ToolCompleted) -> Changes:
    """Note a search whose passages a model is to rank."""
    return {"unranked": (*job.tools.unranked, event)} if event.found is not None and event.error is None else {}


def _reranked(job: Job, event: e.PassagesReranked) -> Changes:
    """Note that the order of a search's passages is known: what a model has chosen of needs no summary."""
    unranked = tuple(one for one in job.tools.unranked if (one.step, one.call) != (event.step, event.call))
    changes: Changes = {"unranked": unranked}
    if event.reranked and event.call in job.tools.shortened:
        changes["shortened"] = tuple(call for call in job.tools.shortened if call != event.call)
    return changes


def _rewritten(job: Job, event: e.QueryRewritten) -> Changes:
    """Note what a search is to find, or that its query stays: before it is asked for."""
    return {"calls": _with(job, event.call, rewritten=event)} if event.step == job.model.step else {}


def _counted(job: Job, event: e.ToolCompleted) -> Changes:
    """Count a call that was made before with the same result."""
    ended = next((call for call in job.tools.calls if call.wanted.call == event.call), None)
    return {"repeats": counted(job.tools.repeats, ended.meant, event)} if ended else {}


def _recorded(job: Job, event: e.ToolCompleted) -> Changes:
    """Keep what a tool for planning returned, as it returned it."""
    if event.tool not in TASK_TOOLS or event.repeat_of is not None:
        return {}
    failed = event.error is not None or event.status != "success"
    shown = event.content if event.error is None else event.error.message
    whole = event.full if event.full is not None else unframed(shown)
    kept = (*job.tools.recorded, RecordedResult(event.tool, whole, failed))[-RECORDED_MAX:]
    while len(kept) > 1 and sum(len(one.content) for one in kept) > RECORDED_MAX_CHARS:
        kept = kept[1:]
    return {"recorded": kept}


def _ran(job: Job, event: e.ToolCompleted) -> Changes:
    """Note that a required tool ran, whatever it returned."""
    required = job.life.submitted.options.required_tools if job.life.submitted else ()
    if event.tool not in required or event.tool in job.tools.ran:
        return {}
    ran = event.error is None or event.error.code in RAN
    return {"ran": (*job.tools.ran, event.tool)} if ran else {}


def _injected(job: Job, event: e.ContextInjected) -> Changes:
    return {"sent_back": True} if event.about == "required_tools" else {}


def _tainted(job: Job, event: e.ToolCompleted) -> Changes:
    """Note the first untrusted tool whose words the job reads, in a result or in an error."""
    stranger = None if job.tools.taint is not None else stranger_of(job, event)
    if stranger is None:
        return {}
    child = event.child.job_id if event.child is not None and event.child.tainted_by else None
    kind = "tool" if child is None else "child"
    return {"taint": TaintSource(kind=kind, name=stranger, step=event.step, call=event.call, job_id=child)}


def _routed(job: Job, event: e.JobRouted) -> Changes:
    """Note the first of the documents given to the job that holds the words of strangers."""
    untrusted = next((one.name for one in event.attachments if one.untrusted), None)
    if untrusted is None or job.tools.taint is not None:
        return {}
    return {"taint": TaintSource(kind="document", name=untrusted)}


def _with(job: Job, number: str, **changes: Any) -> tuple[Call, ...]:
    calls = list(job.tools.calls)
    for at, call in enumerate(calls):
        if call.wanted.call == number:
            calls[at] = call._replace(**changes)
    return tuple(calls)


def _decided(job: Job, event: e.DecisionMade) -> Changes:
    return {"calls": tuple(_decided_by(event, call) for call in job.tools.calls)}


def _decided_by(event: e.DecisionMade, call: Call) -> Call:
    return call._replace(decision=event) if call.decision_id == event.decision_id else call


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.JobSubmitted: _submitted,
    e.JobRouted: _routed,
    e.JobRerouted: _rerouted,
    e.ModelRequested: _model_requested,
    e.AuxiliaryRequested: _aux_asked,
    e.AuxiliaryFailed: _aux_asked,
    e.ModelCompleted: _asked,
    e.ToolsDiscovered: _discovered,
    e.SessionContinued: _continued,
    e.ToolRequested: _requested,
    e.ClientToolsGiven: _client_given,
    e.ChildStarted: _child_started,
    e.ToolUnknown: _unknown,
    e.ToolCompleted: _completed,
    e.QueryRewritten: _rewritten,
    e.PassagesReranked: _reranked,
    e.DecisionMade: _decided,
    e.ContextInjected: _injected,
    e.ApprovalRequested: _approval_requested,
    e.ApprovalDecided: _approval_decided,
}
