"""What the open tool calls of a step need: a person, a job of their own, or to be run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wayline.contracts.jobs import PendingApproval, Waiting
from wayline.contracts.tools import RUN_CODE, Effect
from wayline.executor.decide import query_rewrite
from wayline.executor.decide.actions import (
    Action,
    AskApproval,
    AwaitChildren,
    EndDenied,
    GiveOut,
    Park,
    Resolve,
    RunProgram,
    RunTools,
    SettleCalls,
    StartChildren,
    StopChildren,
)
from wayline.executor.decide.approvals import MAY_RUN, ApprovalState, pending_approval, stands
from wayline.executor.decide.children import begun_children, is_child_call, under_way
from wayline.executor.decide.client_calls import pending_calls, waiting_for_results
from wayline.executor.decide.limits import is_out_of_time, time_over
from wayline.executor.decide.repeated_calls import end_loop, is_looping
from wayline.journal import Call, Job


def go_on_with_calls(job: Job) -> Action | None:
    """Return what the step's open calls need; None: none is open, or those that are need nothing now."""
    open_calls = _open(job)
    if not open_calls:
        return None
    return (
        resolve_call(job) or end_loop(job) or run_calls(job, open_calls) or await_children(job) or park_for_others(job)
    )


def resolve_call(job: Job) -> Action | None:
    """Write down what a human has decided on a call, unless it is to run again."""
    decided = (call for call in _open_everywhere(job) if call.decision is not None and call.decision.outcome != "retry")
    call = next(decided, None)
    return Resolve(call) if call else None


def run_calls(job: Job, open_calls: Sequence[Call]) -> Action | None:
    """Run the calls that wait for no human; first ask for the approvals that others need."""
    calls = [(call, stands(job, call)) for call in open_calls if not _waits(job, call) and not is_looping(job, call)]
    runnable = [call for call, how in calls if how in MAY_RUN]
    needed = tuple(call for call, how in calls if how is ApprovalState.NEEDED)
    denied = tuple(call for call, how in calls if how is ApprovalState.DENIED)
    if not (runnable or needed or denied):
        return None
    if is_out_of_time(job):
        # What has begun is brought to an end; nothing is begun for which nobody will wait.
        return _stop_begun(job) or time_over(job)
    if needed:
        return AskApproval(needed)
    if denied:
        return EndDenied(denied)
    return _run(job, runnable)


def _run(job: Job, runnable: list[Call]) -> Action | None:
    """Choose which of the calls run now, and how; None: an earlier call has to end first."""
    if _must_wait_for_the_first(job) or (_is_elsewhere(job) and in_order(job, runnable)):
        return None
    beside = _beside(job, runnable)
    if children := tuple(call for call in beside if is_child_call(job, call)):
        return StartChildren(children)
    if theirs := tuple(call for call in beside if job.tools.is_client(call)):
        return GiveOut(theirs)
    if is_program(job, beside[0]):
        return RunProgram(beside[0])
    return query_rewrite.due(job, beside) or RunTools(beside)


def _stop_begun(job: Job) -> Action | None:
    """Bring to an end what was begun of a job whose time is over; None: nothing was."""
    if children := begun_children(job):
        return StopChildren(children, "timeout")
    begun = begun_calls(job)
    return SettleCalls(begun, "timeout") if begun else None


def await_children(job: Job) -> Action | None:
    """Wait for the jobs that the calls of this step have become; stop them where the job's time is over."""
    calls = under_way(job)
    if not calls:
        return None
    if is_out_of_time(job) or job.family.overdue:
        return StopChildren(calls, "timeout")
    others = park_for_others(job)
    return AwaitChildren(calls, others.waiting if others is not None else None)


def park_for_others(job: Job) -> Park | None:
    """Park a job whose calls all wait for people, or for the results of its caller's tools."""
    people, theirs = park_for_decision(job), pending_calls(job)
    if not theirs:
        return people
    if people is None:
        return Park(waiting_for_results(theirs))
    return Park(people.waiting.model_copy(update={"tool_calls": theirs}))


def _is_elsewhere(job: Job) -> bool:
    """Return whether calls of the step are under way as jobs of their own, or with the job's caller."""
    return bool(under_way(job) or job.tools.given_out)


def park_for_decision(job: Job) -> Park | None:
    """Park a job whose calls all wait for a human."""
    approvals = tuple(pending_approval(job, asked) for asked in job.tools.pending)
    call = next((call for call in _open_everywhere(job) if call.undecided), None)
    if call is None:
        return Park(_for_approval(approvals)) if approvals else None
    assert call.decision_id is not None
    return Park(
        Waiting(
            why="needs_decision",
            wait_id=call.decision_id,
            question=f"Nobody knows whether {call.meant.tool} did its work: did it?",
            tool=call.meant.tool,
            arguments=call.meant.arguments,
            expires_at=call.expires_at,
            approvals=approvals,
        )
    )


def _for_approval(approvals: tuple[PendingApproval, ...]) -> Waiting:
    """Return the wait for approvals; what stands outside of their list is of the first."""
    first = approvals[0]
    return Waiting(
        why="approval",
        wait_id=first.approval_id,
        question=first.reason if first.input_schema else f"May {first.tool} be called with these arguments?",
        tool=first.tool,
        arguments=first.arguments,
        expires_at=first.expires_at,
        approvals=approvals,
    )


def _open(job: Job) -> list[Call]:
    return [call for call in job.tools.calls if call.done is None]


def _open_everywhere(job: Job) -> list[Call]:
    """Return the open calls of the model, and before them those of its program."""
    return [*(call for call in job.code.program_calls if call.done is None), *_open(job)]


def begun_calls(job: Job) -> tuple[Call, ...]:
    """Return the calls whose intent is in the log and whose end is not, whichever holder asked for them.

    Those of a program come first: the end of its own call ends it. Calls that are jobs of their own are not among them.
    """
    return tuple(call for call in _open_everywhere(job) if call.key is not None and not is_child_call(job, call))


def only_read(job: Job, calls: Sequence[Call]) -> bool:
    """Return whether calls that have their intents change nothing, cost nothing and need nobody's approval.

    What such a call does may be done again, or by a holder that has lost the job.
    """
    definitions = [job.tools.definition(call.meant.tool) for call in calls if call.effect is Effect.READ]
    free = all(known is not None and known.charge is None for known in definitions)
    return free and len(definitions) == len(calls) and not job.tools.approvals


def is_program(job: Job, call: Call) -> bool:
    """Return whether a call is one of `run_code` by an agent that may use it."""
    return job.routing.config is not None and job.routing.config.code and call.meant.tool == RUN_CODE


def _waits(job: Job, call: Call) -> bool:
    """Return whether a call is under way elsewhere, its program waits for nothing but people, or for another.

    The calls of a step's programs are numbered in the order in which they are asked for: one program at a time.
    """
    if call.child_id is not None or (call.key is not None and job.tools.is_client(call)):
        return True
    if call.wanted.call != job.code.program:
        return job.code.program is not None and is_program(job, call)
    open_calls = [one for one in job.code.program_calls if one.done is None]
    if open_calls and _wants_order(job):
        # Those behind the first may be approved already: none of them goes before it.
        open_calls = [min(open_calls, key=lambda one: job.code.number(one.wanted.call))]
    return bool(open_calls) and all(stands(job, one) is ApprovalState.WAITING for one in open_calls)


def _must_wait_for_the_first(job: Job) -> bool:
    """Return whether the agent wants order and the first open call waits for a human."""
    return _wants_order(job) and stands(job, _open(job)[0]) not in MAY_RUN


def _wants_order(job: Job) -> bool:
    return job.routing.config is not None and job.routing.config.tools_in_order


def _beside(job: Job, runnable: list[Call]) -> tuple[Call, ...]:
    """Return all of them, unless the agent or one of the tools asks for order."""
    return (runnable[0],) if len(runnable) > 1 and in_order(job, runnable) else tuple(runnable)


def in_order(job: Job, calls: Iterable[Call]) -> bool:
    """Return whether the agent or the tool of one of these calls asks for order."""
    assert job.routing.config is not None
    if job.routing.config.tools_in_order:
        return True
    alone = [tool.name for tool in (*(job.tools.offered or ()), *job.tools.discovered) if tool.in_order]
    return bool(alone) and any(call.meant.tool in alone for call in calls)
