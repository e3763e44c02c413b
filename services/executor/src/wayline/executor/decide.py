"""What a job needs next: a pure function of what its log says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from wayline.contracts.chat import Citation, ToolMessage
from wayline.contracts.jobs import Failure, Waiting
from wayline.journal import Call, Job

ATTEMPTS_MAX = 4
"""Tries of one model call, the first one included."""
BACKOFF_S = (0.0, 1.0, 4.0, 10.0)


@dataclass(frozen=True, slots=True)
class CallModel:
    step: int
    attempt: int
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RunTools:
    """Calls that may run beside each other."""

    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Resolve:
    """Write a human's decision on an unknown outcome into the ledger."""

    call: Call


@dataclass(frozen=True, slots=True)
class Park:
    waiting: Waiting


@dataclass(frozen=True, slots=True)
class Complete:
    answer: str
    citations: tuple[Citation, ...] = ()
    partial: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    error: Failure


@dataclass(frozen=True, slots=True)
class Cancel:
    reason: str
    by: str


Action = CallModel | RunTools | Resolve | Park | Complete | Fail | Cancel


def decide(job: Job) -> Action | None:
    """The job's next action; None when it has ended. No clock: the newest event says what time it is."""
    if job.ended is not None:
        return None
    if job.cancel is not None:
        return Cancel(job.cancel.reason, job.cancel.by)
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


def _beside(job: Job, runnable: list[Call]) -> tuple[Call, ...]:
    """All of them, unless the agent or one of the tools asks for order."""
    assert job.config is not None
    alone = {tool.name for tool in (*(job.tools or ()), *job.discovered) if tool.in_order}
    if job.config.tools_in_order or any(call.meant.tool in alone for call in runnable):
        return (runnable[0],)
    return tuple(runnable)


def _model(job: Job) -> Action:
    assert job.limits is not None
    failed = job.model_failed
    if failed is not None and (not failed.retryable or failed.attempt >= ATTEMPTS_MAX):
        return Fail(failed.error)
    said = job.last_said
    if said is not None and job.messages[-1] is said and not said.tool_calls:
        return Complete(said.text, said.citations)
    if _out_of_time(job):
        return _cut_short(job, f"the job's {job.limits.max_seconds:g} s are over", "time_limit")
    if failed is not None:
        return CallModel(failed.step, failed.attempt + 1, BACKOFF_S[min(failed.attempt, len(BACKOFF_S) - 1)])
    if job.model_attempt:
        # The last attempt has no end in the log: its holder died. The same step, once more, as a new attempt.
        return CallModel(job.step, job.model_attempt + 1)
    if job.step >= job.limits.max_steps:
        return _cut_short(job, f"the job's {job.limits.max_steps} steps are used up", "step_limit")
    return CallModel(job.step + 1, 1)


def _out_of_time(job: Job) -> bool:
    if job.at is None or job.created_at is None or job.limits is None:
        return False
    return job.at - job.created_at >= timedelta(seconds=job.limits.max_seconds)


def _cut_short(job: Job, reason: str, code: str) -> Action:
    """End at a limit with what there is: what the model said, else what its tools found."""
    said = [m.text for m in job.messages if m.role == "assistant" and m.text]
    found = [m for m in job.messages if isinstance(m, ToolMessage) and not m.failed]
    if not said and not found:
        return Fail(Failure(code=code, message=f"{reason} and there is nothing to answer with"))
    answer = said[-1] if said else found[-1].content
    citations = () if said else found[-1].citations
    return Complete(answer, citations, partial=True, reason=reason)
