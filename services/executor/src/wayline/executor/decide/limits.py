"""When a job has used its steps or its time. Pure: the newest event says what time it is."""

from __future__ import annotations

from wayline.executor.decide.accept_answer import cut_short
from wayline.executor.decide.actions import Action, Complete, Fail
from wayline.journal import Job


def has_more_steps(job: Job) -> bool:
    """Return whether a job has a step and time left."""
    assert job.routing.limits is not None
    return job.model.step < job.routing.limits.max_steps and not is_out_of_time(job)


def is_out_of_time(job: Job) -> bool:
    """Return whether a job's time is over."""
    return job.at is not None and job.life.deadline is not None and job.at >= job.life.deadline


def end_at_deadline(job: Job) -> Action | None:
    """End a job whose time is over."""
    return time_over(job) if is_out_of_time(job) else None


def time_over(job: Job) -> Complete | Fail:
    """End a job with what it has when its time is over."""
    assert job.routing.limits is not None
    return cut_short(job, f"the job's {job.routing.limits.max_seconds:g} s are over", "time_limit")


def end_at_step_limit(job: Job) -> Action | None:
    """End a job that has used all its steps."""
    if has_more_steps(job):
        return None
    limits = job.routing.limits
    assert limits is not None
    share = f", a {limits.steps_level} job's share of {limits.steps_cap}," if limits.steps_level else ""
    return cut_short(job, f"the job's {limits.max_steps} steps{share} are used up", "step_limit")
