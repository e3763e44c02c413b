"""Which calls are jobs of their own, what they ask of them, and what their ends say. Pure."""

from __future__ import annotations

from typing import NamedTuple

from wayline.contracts.events import ChildEnd, JobCancelled, JobCompleted, JobFailed
from wayline.contracts.tools import RUN_AGENT, Effect, ToolError, ToolReply
from wayline.executor.decide.approvals import arguments_of
from wayline.journal import Call, Job
from wayline.journal.costs import plus
from wayline.llm.tokens import estimate

INPUT_MAX_BYTES = 96 * 1024
"""Of a task: about as much as a client may submit."""


class Limits(NamedTuple):
    """How many jobs one may start."""

    depth_max: int
    per_step_max: int
    per_job_max: int


class Task(NamedTuple):
    """What a call of `run_agent` asks for."""

    agent: str
    input: str


def is_child_call(job: Job, call: Call) -> bool:
    """Return whether a call is one of `run_agent` by an agent that may use it."""
    return bool(job.routing.agents) and call.meant.tool == RUN_AGENT


def begun_children(job: Job) -> tuple[Call, ...]:
    """Return the calls whose jobs may have been started and whose ends are not in the log."""
    return tuple(call for call in job.tools.calls if call.done is None and call.key and is_child_call(job, call))


def under_way(job: Job) -> tuple[Call, ...]:
    """Return the calls whose jobs were started and whose ends are not in the log."""
    return tuple(call for call in job.tools.calls if call.done is None and call.child_id is not None)


def task_of(job: Job, call: Call) -> Task | ToolReply:
    """Return what a call asks for, or what is wrong with it."""
    arguments = arguments_of(job, call)
    agent, text = arguments.get("agent"), arguments.get("input")
    names = [one.name for one in job.routing.agents]
    if agent not in names:
        return refused("invalid_arguments", f"`agent` is one of: {', '.join(names)}")
    if not isinstance(text, str) or not text.strip():
        return refused("invalid_arguments", "`input` is the task, a text that is not empty")
    if "\0" in text:
        return refused("invalid_arguments", "`input` has a NUL character in it")
    size = len(text.encode())
    if size > INPUT_MAX_BYTES:
        return refused("invalid_arguments", f"`input` has {size} bytes, and at most {INPUT_MAX_BYTES} are taken")
    return Task(agent, text)


def over_limit(job: Job, limits: Limits, *, place: int) -> ToolReply | None:
    """Return why a job may start no more; `place`: how many calls stand before this one that are to be started."""
    depth = job.family.parent.depth if job.family.parent else 0
    if depth >= limits.depth_max:
        reason = f"this job is {depth} jobs below the first one, and no deeper one can be started: do the task yourself"
        return refused("refused", reason)
    of_step = sum(child.step == job.model.step for child in job.family.children) + place
    if of_step >= limits.per_step_max:
        reason = f"at most {limits.per_step_max} agents work at the same time: start this one in a later step"
        return refused("refused", reason)
    if len(job.family.children) + place >= limits.per_job_max:
        return refused("refused", f"this job has started {limits.per_job_max} agents already: go on without more")
    return None


def refused(code: str, message: str) -> ToolReply:
    """Return the answer to a call that starts nothing."""
    return ToolReply(
        status="failed", error=ToolError.model_validate({"code": code, "message": message}), strangers=False
    )


def reply_of(child: Job) -> ToolReply:
    """Return the end of a job as the result of the call that started it; what a tainted one says is of strangers."""
    return _end(child).model_copy(update={"strangers": child.tools.tainted_by is not None})


def _end(child: Job) -> ToolReply:
    ended, agent = child.life.ended, child.life.submitted.agent if child.life.submitted else "-"
    match ended:
        case JobCompleted():
            note = f"\n\n[This answer is not whole: {ended.reason}. Job {child.job_id}.]" if ended.partial else ""
            text = ended.answer + note
            size = len(text.encode())
            return ToolReply(
                status="success",
                content=text,
                citations=ended.citations,
                effect=Effect.IDEMPOTENT,
                duration_ms=worked_s(child) * 1_000,
                size_bytes=size,
                tokens=estimate(text),
            )
        case JobFailed():
            return refused("tool_failed", f"{agent} failed ({ended.error.code}): {ended.error.message}. {_job(child)}")
        case JobCancelled():
            reason = f": {ended.reason}" if ended.reason else ""
            return refused("cancelled", f"{agent} was cancelled{reason}. {_job(child)}")
        case None:
            raise ValueError(f"job {child.job_id} has not ended")


def _job(child: Job) -> str:
    return f"Job {child.job_id}."


def end_of(child: Job) -> ChildEnd:
    """Return what a parent's log says of an ended job."""
    return ChildEnd(
        job_id=child.job_id,
        status=child.life.status,
        cost_usd=plus(child.money.cost_usd, child.family.children_usd),
        most_usd=plus(child.money.spent_usd, child.family.children_most_usd),
        worked_s=worked_s(child),
        tainted_by=child.tools.tainted_by,
    )


def worked_s(child: Job) -> float:
    """Return the seconds from a job's beginning to its end, without those in which it waited for people."""
    life = child.life
    if life.created_at is None or life.ended_at is None:
        return 0.0
    return max(0.0, (life.ended_at - life.created_at - life.rested).total_seconds())
