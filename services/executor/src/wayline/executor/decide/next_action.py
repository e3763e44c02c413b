"""What a job needs next: a pure function of what its log says."""

from __future__ import annotations

from wayline.contracts.jobs import Failure, Waiting
from wayline.executor.decide.accept_answer import after_answer, cut_short, escalate_weak
from wayline.executor.decide.actions import (
    Action,
    CallModel,
    Cancel,
    Complete,
    Fail,
    NoteLost,
    Park,
    Resolve,
    RunTools,
    SettleCalls,
)
from wayline.executor.decide.classification import before_first_call
from wayline.executor.decide.compaction import due
from wayline.executor.decide.retry_or_reroute import after_failure
from wayline.journal import Call, Job


def decide(job: Job) -> Action | None:
    """The job's next action; None when it has ended. No clock: the newest event says what time it is."""
    if job.ended is not None:
        return None
    if job.model_open is not None:
        # Nobody decides while a call is under way: whoever made this one is gone.
        return NoteLost(job.model_open)
    if job.aux_open is not None:
        return NoteLost(job.aux_open)
    if job.cancel is not None:
        begun = _begun(job)
        return SettleCalls(begun, "cancelled") if begun else Cancel(job.cancel.reason, job.cancel.by)
    if job.limits is None:
        return Fail(Failure(code="not_routed", message="the log has no route: it was written by something else"))
    if job.calls:
        return _calls(job)
    return _model(job)


def _calls(job: Job) -> Action:
    open_calls = [call for call in job.calls if call.done is None]
    decided = next((c for c in open_calls if c.decision is not None and c.decision.outcome != "retry"), None)
    if decided:
        return Resolve(decided)
    runnable = [call for call in open_calls if not call.undecided]
    if runnable and _out_of_time(job):
        # What has begun is brought to an end; nothing is begun for which nobody will wait.
        begun = _begun(job)
        return SettleCalls(begun, "timeout") if begun else _time_over(job)
    if runnable:
        return RunTools(_beside(job, runnable))
    call = open_calls[0]
    assert call.decision_id is not None
    return Park(
        Waiting(
            why="needs_decision",
            wait_id=call.decision_id,
            question=f"Nobody knows whether {call.meant.tool} did its work: did it?",
            tool=call.meant.tool,
            arguments=call.meant.arguments,
            expires_at=call.expires_at,
        )
    )


def _begun(job: Job) -> tuple[Call, ...]:
    """Return the calls whose intent is in the log and whose end is not, whoever asked for them."""
    return tuple(call for call in job.calls if call.key is not None and call.done is None)


def _beside(job: Job, runnable: list[Call]) -> tuple[Call, ...]:
    """All of them, unless the agent or one of the tools asks for order."""
    assert job.config is not None
    alone = {tool.name for tool in (*(job.tools or ()), *job.discovered) if tool.in_order}
    if job.config.tools_in_order or any(call.meant.tool in alone for call in runnable):
        return (runnable[0],)
    return tuple(runnable)


def _model(job: Job) -> Action:
    assert job.limits is not None
    said, failed, late = job.last_said, job.model_failed, _out_of_time(job)
    more = job.step < job.limits.max_steps and not late
    if said is not None and job.messages[-1] is said and not said.tool_calls:
        return after_answer(job, said, more=more)
    if failed is not None and not failed.retryable:
        return after_failure(job, failed)
    if late:
        return _time_over(job)
    if job.asked is None and (first := before_first_call(job)):
        return first
    if failed is not None:
        return after_failure(job, failed)
    if job.model_attempt:
        # Another model goes on with the step at which the one before failed.
        return CallModel(job.step, job.model_attempt + 1)
    if not more:
        return cut_short(job, f"the job's {job.limits.max_steps} steps are used up", "step_limit")
    return (escalate_weak(job, said) if said else None) or due(job) or CallModel(job.step + 1, 1)


def _out_of_time(job: Job) -> bool:
    return job.at is not None and job.deadline is not None and job.at >= job.deadline


def _time_over(job: Job) -> Complete | Fail:
    assert job.limits is not None
    return cut_short(job, f"the job's {job.limits.max_seconds:g} s are over", "time_limit")
