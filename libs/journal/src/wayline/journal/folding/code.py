"""Which program runs after each event, and how far its calls are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.chat import ToolCall
from wayline.contracts.tools import RUN_CODE
from wayline.journal.calls import Call, Code
from wayline.journal.state import Changes, Job

NO_PROGRAM = Code()


def _answered(job: Job, _: e.ModelCompleted) -> Changes:
    return {} if job.code == NO_PROGRAM else NO_PROGRAM._asdict()


def _requested(job: Job, event: e.ToolRequested) -> Changes:
    if event.program is None:
        return _begun(event) if event.tool == RUN_CODE else {}
    intent = {"key": event.key, "span": event.trace, "effect": event.effect}
    if (known := job.code.call(event.call)) is not None:
        anew = {"decision_id": None, "decision": None, "retried": known.retries}
        return {"program_calls": _with(job, event.call, **intent, **anew)}
    wanted = ToolCall(call=event.call, tool=event.tool, arguments=event.arguments)
    return {"program_calls": (*job.code.program_calls, Call(wanted, **intent))}


def _approval_requested(job: Job, event: e.ApprovalRequested) -> Changes:
    """Note a call of the program that waits for its approval: its intent is not in the log yet."""
    if event.program is None or job.code.call(event.call) is not None:
        return {}
    given = event.arguments if event.given is None else event.given
    wanted = ToolCall(call=event.call, tool=event.tool, arguments=given)
    return {"program_calls": (*job.code.program_calls, Call(wanted))}


def _begun(event: e.ToolRequested) -> Changes:
    return {"program": event.call, "began_at": event.at}


def _unknown(job: Job, event: e.ToolUnknown) -> Changes:
    calls = _with(job, event.call, decision_id=event.decision_id, expires_at=event.expires_at)
    return {"program_calls": calls} if job.code.call(event.call) else {}


def _decided(job: Job, event: e.DecisionMade) -> Changes:
    decided = next((call for call in job.code.program_calls if call.decision_id == event.decision_id), None)
    return {"program_calls": _with(job, decided.wanted.call, decision=event)} if decided else {}


def _completed(job: Job, event: e.ToolCompleted) -> Changes:
    if job.code.program is None:
        return {}
    if event.call == job.code.program:
        # Not their count: a call that was never made has left its number, and an approval of the next may stand.
        numbers = (job.code.number(call.wanted.call) for call in job.code.program_calls)
        return Code(earlier=job.code.earlier + max(numbers, default=0))._asdict()
    if job.code.call(event.call) is None:
        return {}
    return {"program_calls": _with(job, event.call, done=event), "outcomes": (*job.code.outcomes, event.call)}


def _suspended(_: Job, event: e.CodeSuspended) -> Changes:
    return {"suspended": event}


def _with(job: Job, name: str, **changes: Any) -> tuple[Call, ...]:
    return tuple(call._replace(**changes) if call.wanted.call == name else call for call in job.code.program_calls)


CHANGES: dict[type[e.Event], Callable[[Job, Any], Changes]] = {
    e.ModelCompleted: _answered,
    e.ToolRequested: _requested,
    e.ToolUnknown: _unknown,
    e.ToolCompleted: _completed,
    e.DecisionMade: _decided,
    e.CodeSuspended: _suspended,
    e.ApprovalRequested: _approval_requested,
}
