"""What a job needs next: a pure function of what its log says."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from wayline.contracts.jobs import TURN, Failure, PendingApproval, Waiting
from wayline.contracts.tools import RUN_CODE
from wayline.executor.decide import result_summary
from wayline.executor.decide.accept_answer import after_answer, cut_short, escalate_weak
from wayline.executor.decide.actions import (
    Action,
    AskApproval,
    AwaitChildren,
    CallModel,
    Cancel,
    Complete,
    EndDenied,
    Fail,
    NoteLost,
    Park,
    Resolve,
    RunProgram,
    RunTools,
    SettleCalls,
    StartChildren,
    StopChildren,
)
from wayline.executor.decide.approvals import MAY_RUN, Standing, pending_approval, stands
from wayline.executor.decide.children import begun_children, is_child_call, under_way
from wayline.executor.decide.classification import before_first_call
from wayline.executor.decide.compaction import due
from wayline.executor.decide.repeated_calls import end_loop, is_looping
from wayline.executor.decide.retry_or_reroute import after_failure
from wayline.journal import Call, Job

Rule = Callable[[Job], Action | None]
"""Says what a job needs where it applies; None: the next rule is asked."""

HANDED_OVER = "Handed to job {}, which was running: its answer takes this into account."


def decide(job: Job) -> Action | None:
    """Return the job's next action; None when it has ended. No clock: the newest event says what time it is."""
    if job.life.ended is not None:
        return None
    for rule in RULES:
        action = rule(job)
        if action is not None:
            return action
    return CallModel(job.model.step + 1, 1)


def note_lost(job: Job) -> Action | None:
    """Note that a call is lost: nobody decides while one is under way, so its holder is gone."""
    asked = job.model.open or job.model.aux_open
    return NoteLost(asked) if asked is not None else None


def end_handed_over(job: Job) -> Action | None:
    """End a job whose words were said in the job that ran; a cancel takes nothing back."""
    return Complete(HANDED_OVER.format(job.session.handed_to)) if job.session.handed_to is not None else None


def cancel(job: Job) -> Action | None:
    """End a cancelled job, once its open calls are settled."""
    if job.life.cancel is None:
        return None
    if children := begun_children(job):
        return StopChildren(children, "cancelled")
    begun = begun_calls(job)
    return SettleCalls(begun, "cancelled") if begun else Cancel(_cancel_reason(job), job.life.cancel.by)


def _cancel_reason(job: Job) -> str:
    """Return why the job was cancelled; children that were not waited for any longer are named."""
    assert job.life.cancel is not None
    left = [child.job_id for child in job.family.children if child.status is None]
    named = f"told to stop, and had not ended: {', '.join(left)}" if left else ""
    return "; ".join(filter(None, (job.life.cancel.reason, named)))


def fail_unrouted(job: Job) -> Action | None:
    """End a job that no router has routed."""
    if job.routing.limits is not None:
        return None
    return Fail(Failure(code="not_routed", message="the log has no route: it was written by something else"))


def wait_for_turn(job: Job) -> Action | None:
    """Park a job that something woke before its turn in its session has come."""
    turn, session = job.session.turn, job.session
    if turn is None or turn.after is None or session.continued is not None or job.model.asked is not None:
        return None
    return Park(Waiting(why="turn", wait_id=TURN, after=turn.after, into=session.into))


def resolve_call(job: Job) -> Action | None:
    """Write down what a human has decided on a call, unless it is to run again."""
    decided = (call for call in _open_everywhere(job) if call.decision is not None and call.decision.outcome != "retry")
    call = next(decided, None)
    return Resolve(call) if call else None


def run_calls(job: Job) -> Action | None:
    """Run the calls that wait for no human; first ask for the approvals that others need."""
    calls = [(call, stands(job, call)) for call in _open(job) if not _waits(job, call) and not is_looping(job, call)]
    runnable = [call for call, how in calls if how in MAY_RUN]
    needed = tuple(call for call, how in calls if how is Standing.NEEDED)
    denied = tuple(call for call, how in calls if how is Standing.DENIED)
    if not (runnable or needed or denied):
        return None
    if _out_of_time(job):
        # What has begun is brought to an end; nothing is begun for which nobody will wait.
        return _stop_begun(job) or _time_over(job)
    if needed:
        return AskApproval(needed)
    if denied:
        return EndDenied(denied)
    return _run(job, runnable)


def _run(job: Job, runnable: list[Call]) -> Action | None:
    """Choose which of the calls run now, and how; None: an earlier call has to end first."""
    if _must_wait_for_the_first(job) or (under_way(job) and in_order(job, runnable)):
        return None
    beside = _beside(job, runnable)
    if children := tuple(call for call in beside if is_child_call(job, call)):
        return StartChildren(children)
    return RunProgram(beside[0]) if is_program(job, beside[0]) else RunTools(beside)


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
    if _out_of_time(job) or job.family.overdue:
        return StopChildren(calls, "timeout")
    people = park_for_decision(job)
    return AwaitChildren(calls, people.waiting if isinstance(people, Park) else None)


def park_for_decision(job: Job) -> Action | None:
    """Park a job whose calls all wait for a human."""
    approvals = tuple(pending_approval(asked) for asked in job.tools.pending)
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


def accept_answer(job: Job) -> Action | None:
    """End the job with its model's last message, or have that mended."""
    message = job.conversation.last_said
    if message is None or job.conversation.messages[-1] is not message or message.tool_calls:
        return None
    action = after_answer(job, message, more=_more_steps(job))
    whole = isinstance(action, Complete) and not action.partial
    # Words that came while the model wrote its answer are answered, too.
    return None if whole and job.conversation.steering and _more_steps(job) else action


def leave_failed_model(job: Job) -> Action | None:
    """Go on elsewhere where no second try can help."""
    failed = job.model.failed
    return after_failure(job, failed) if failed is not None and not failed.retryable else None


def end_at_deadline(job: Job) -> Action | None:
    """End a job whose time is over."""
    return _time_over(job) if _out_of_time(job) else None


def classify_first(job: Job) -> Action | None:
    """Find a job's type of task before its first call."""
    return before_first_call(job) if job.model.asked is None else None


def retry_failed_call(job: Job) -> Action | None:
    """Try a failed call again, here or elsewhere."""
    return after_failure(job, job.model.failed) if job.model.failed is not None else None


def continue_step(job: Job) -> Action | None:
    """Let another model go on with the step at which the one before failed."""
    return CallModel(job.model.step, job.model.attempt + 1) if job.model.attempt else None


def end_at_step_limit(job: Job) -> Action | None:
    """End a job that has used all its steps."""
    if _more_steps(job):
        return None
    limits = job.routing.limits
    assert limits is not None
    share = f", a {limits.steps_level} job's share of {limits.steps_cap}," if limits.steps_level else ""
    return cut_short(job, f"the job's {limits.max_steps} steps{share} are used up", "step_limit")


def escalate_weak_step(job: Job) -> Action | None:
    """Have a stronger model go on after a weak step."""
    return escalate_weak(job, job.conversation.last_said) if job.conversation.last_said else None


RULES: tuple[Rule, ...] = (
    note_lost,
    end_handed_over,
    cancel,
    fail_unrouted,
    wait_for_turn,
    resolve_call,
    end_loop,
    run_calls,
    await_children,
    park_for_decision,
    accept_answer,
    leave_failed_model,
    end_at_deadline,
    classify_first,
    retry_failed_call,
    continue_step,
    end_at_step_limit,
    escalate_weak_step,
    result_summary.due,
    due,
)
"""In this order: the first that applies decides. Where none does, the next step begins."""


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


def is_program(job: Job, call: Call) -> bool:
    """Return whether a call is one of `run_code` by an agent that may use it."""
    return call.meant.tool == RUN_CODE and job.routing.config is not None and job.routing.config.code


def _waits(job: Job, call: Call) -> bool:
    """Return whether a call has become a job of its own, or its program waits for nothing but people."""
    if call.child_id is not None:
        return True
    open_calls = [one for one in job.code.program_calls if one.done is None]
    return (
        call.wanted.call == job.code.program
        and bool(open_calls)
        and all(stands(job, one) is Standing.WAITING for one in open_calls)
    )


def _must_wait_for_the_first(job: Job) -> bool:
    """Return whether the agent wants order and the first open call waits for a human."""
    assert job.routing.config is not None
    return job.routing.config.tools_in_order and stands(job, _open(job)[0]) not in MAY_RUN


def _beside(job: Job, runnable: list[Call]) -> tuple[Call, ...]:
    """Return all of them, unless the agent or one of the tools asks for order."""
    assert job.routing.config is not None
    return (runnable[0],) if in_order(job, runnable) else tuple(runnable)


def in_order(job: Job, calls: Iterable[Call]) -> bool:
    """Return whether the agent or the tool of one of these calls asks for order."""
    assert job.routing.config is not None
    alone = {tool.name for tool in (*(job.tools.offered or ()), *job.tools.discovered) if tool.in_order}
    return job.routing.config.tools_in_order or any(call.meant.tool in alone for call in calls)


def _more_steps(job: Job) -> bool:
    assert job.routing.limits is not None
    return job.model.step < job.routing.limits.max_steps and not _out_of_time(job)


def _out_of_time(job: Job) -> bool:
    return job.at is not None and job.life.deadline is not None and job.at >= job.life.deadline


def _time_over(job: Job) -> Complete | Fail:
    assert job.routing.limits is not None
    return cut_short(job, f"the job's {job.routing.limits.max_seconds:g} s are over", "time_limit")
