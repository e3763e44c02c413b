"""Finished jobs, handed to a tenant's own services until each of them is said to be done."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from wayline.contracts.base import Frozen, Request, Usd
from wayline.contracts.ids import JobId
from wayline.contracts.jobs import Status

FollowerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$")]
BATCH_MAX = 4
"""Jobs in one answer: clients cannot read fields that were moved out of a message."""
ANSWER_MAX_CHARS = 8_000
REASON_MAX_CHARS = 1_000
REPORTED_MAX = 64
"""Jobs that one request says something about."""
ACK_WAIT_MAX_S = 86_400.0
DELIVERIES_MAX = 100


class FinishedJob(Frozen):
    """A job that has ended; a handler may be given it more than once, and `job_id` tells."""

    job_id: str
    status: Status
    agent: str
    user_id: str | None = None
    session_id: str | None = None
    answer: str | None = Field(default=None, description="At most its first 8,000 characters; the job has the whole.")
    cut: bool = Field(default=False, description="Whether the answer goes on.")
    partial: bool = False
    error_code: str | None = None
    error_message: str | None = None
    steps: int = 0
    cost_usd: Usd | None = Field(default=None, description="None: a call whose price is unknown is part of it.")
    created_at: datetime
    ended_at: datetime
    delivery: int = Field(ge=1, description="Which time it is handed out.")


class FinishedBatch(Frozen):
    """Jobs to react to; each comes again unless it is said to be done in time."""

    jobs: tuple[FinishedJob, ...] = ()


class FailedDelivery(Frozen):
    """A job that a follower could not handle, and why."""

    job_id: JobId
    reason: str = Field(max_length=REASON_MAX_CHARS)


class TakeFinished(Request, subject="jobs.finished.{tenant}", replies=FinishedBatch):
    """Say what became of the jobs that were handed out before, and ask for more.

    The first request under a name begins to keep jobs for it: those that end from then on.
    """

    from_clients = True

    follower: FollowerName = Field(description="Processes with one name share the jobs.")
    done: tuple[JobId, ...] = Field(default=(), max_length=REPORTED_MAX, description="They do not come again.")
    failed: tuple[FailedDelivery, ...] = Field(
        default=(), max_length=REPORTED_MAX, description="They come again, later each time."
    )
    limit: int = Field(default=BATCH_MAX, ge=0, le=BATCH_MAX)
    ack_wait_s: float = Field(default=60, gt=0, le=ACK_WAIT_MAX_S, description="When a job comes again unheard of.")
    deliveries_max: int = Field(
        default=5, ge=1, le=DELIVERIES_MAX, description="After so many a job is put aside as a dead letter."
    )
