"""What a job needs next: a pure function of what its log says."""

from __future__ import annotations

from collections.abc import Callable

from wayline.contracts.jobs import TURN, Failure, Waiting
from wayline.executor.decide import extraction, memory_summary, rerank, result_summary
from wayline.executor.decide.accept_answer import after_answer, escalate_weak
from wayline.executor.decide.actions import (
    Action,
    CallModel,
    Cancel,
    Complete,
    Fail,
    NoteLost,
    Park,
    SettleCalls,
    StopChildren,
)
from wayline.executor.decide.children import begun_children
from wayline.executor.decide.classification import before_first_call
from wayline.executor.decide.compaction import due
from wayline.executor.decide.limits import end_at_deadline, end_at_step_limit, has_more_steps
from wayline.executor.decide.open_calls import begun_calls, go_on_with_calls
from wayline.executor.decide.retry_or_reroute import after_failure
from wayline.journal import Job

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
    """Return why the job was cancelled; children that were not waited for, and jobs whose words it took, are named."""
    assert job.life.cancel is not None
    left = [child.job_id for child in job.family.children if child.status is None]
    named = f"told to stop, and had not ended: {', '.join(left)}" if left else ""
    taken = ", ".join(job.session.steered_by)
    unanswered = f"it had taken what these jobs said, and did not answer: {taken}" if taken else ""
    return "; ".join(filter(None, (job.life.cancel.reason, named, unanswered)))


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


def accept_answer(job: Job) -> Action | None:
    """End the job with its model's last message, or have that mended."""
    message = job.conversation.last_said
    if message is None or job.conversation.messages[-1] is not message or message.tool_calls:
        return None
    action = after_answer(job, message, more=has_more_steps(job))
    whole = isinstance(action, Complete) and not action.partial
    # Words that came while the model wrote its answer are answered, too.
    return None if whole and job.conversation.steering and has_more_steps(job) else action


def leave_failed_model(job: Job) -> Action | None:
    """Go on elsewhere where no second try can help."""
    failed = job.model.failed
    return after_failure(job, failed) if failed is not None and not failed.retryable else None


def classify_first(job: Job) -> Action | None:
    """Find a job's type of task before its first call."""
    return before_first_call(job) if job.model.asked is None else None


def retry_failed_call(job: Job) -> Action | None:
    """Try a failed call again, here or elsewhere."""
    return after_failure(job, job.model.failed) if job.model.failed is not None else None


def continue_step(job: Job) -> Action | None:
    """Let another model go on with the step at which the one before failed."""
    return CallModel(job.model.step, job.model.attempt + 1) if job.model.attempt else None


def escalate_weak_step(job: Job) -> Action | None:
    """Have a stronger model go on after a weak step."""
    return escalate_weak(job, job.conversation.last_said) if job.conversation.last_said else None


RULES: tuple[Rule, ...] = (
    note_lost,
    end_handed_over,
    cancel,
    fail_unrouted,
    wait_for_turn,
    extraction.due,
    memory_summary.due,
    go_on_with_calls,
    accept_answer,
    leave_failed_model,
    end_at_deadline,
    classify_first,
    retry_failed_call,
    continue_step,
    end_at_step_limit,
    escalate_weak_step,
    rerank.due,
    result_summary.due,
    due,
)
"""In this order: the first that applies decides. Where none does, the next step begins."""
