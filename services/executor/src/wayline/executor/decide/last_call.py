"""Whether a job's next call is the last one for which there is room: its model is told so, and answers. Pure."""

from __future__ import annotations

from wayline.contracts.chat import NoteMessage
from wayline.contracts.money import cost_sum
from wayline.executor.decide import worst_case
from wayline.journal import Job

LAST_TURN = (
    "This is the last turn of this job: no more tools are called. Answer now, in the form that is asked for, with what "
    "you have, and say what is missing."
)
LAST_SECONDS = 20.0
"""Of a job's time, what is kept for its answer."""
LAST_SECONDS_SHARE = 0.2
"""The same of a job that has little time in all."""
LAST_CALLS = 2
"""Of a job's own budget, what is kept: so many times what a call of its model has cost on average."""


def last_turn(job: Job) -> NoteMessage | None:
    """Return a note before the last call for which a job has steps, time and money: that call is to answer."""
    last = job.conversation.last_said
    # A correction asks for an answer by itself.
    if job.model.failed is not None or last is None or not last.tool_calls or not _is_last(job):
        return None
    note = NoteMessage(label="CONTEXT", text=LAST_TURN, quoted=True)
    return None if note in job.conversation.messages else note


def _is_last(job: Job) -> bool:
    limits = job.routing.limits
    if limits is None or job.model.step < 1:
        return False
    return job.model.step + 1 == limits.max_steps or _is_out_of_time(job) or _is_out_of_money(job)


def _is_out_of_time(job: Job) -> bool:
    """Return whether the job's time is enough for an answer, and hardly for more."""
    assert job.routing.limits is not None
    if job.at is None or job.life.deadline is None:
        return False
    kept = min(LAST_SECONDS, job.routing.limits.max_seconds * LAST_SECONDS_SHARE)
    return (job.life.deadline - job.at).total_seconds() <= kept


def _is_out_of_money(job: Job) -> bool:
    """Return whether the job's own budget is enough for an answer, and hardly for more; a job that waits is raised."""
    left = worst_case.own_left(job)
    if left is None:
        return False
    models_usd = cost_sum([*job.money.costs.model.values()])
    if not models_usd or worst_case.would_wait(job):
        return False
    return left < LAST_CALLS * models_usd / job.model.step
