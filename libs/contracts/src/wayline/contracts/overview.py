"""What goes on for a tenant, at one look."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Request, Usd
from wayline.contracts.jobs import Lane, Status


class OpenJobs(Frozen):
    """Jobs of one kind that have not ended."""

    status: Literal[Status.QUEUED, Status.RUNNING, Status.PARKED]
    lane: Lane
    waiting_for: str | None = Field(default=None, description="What parked ones wait for, such as `approval`.")
    jobs: int
    oldest_at: datetime = Field(description="When the oldest of them was accepted.")


class SpentLately(Frozen):
    """What was spent in a while, and what the jobs of that while were predicted to cost."""

    hours: int
    cost_usd: Usd
    calls_unknown: int = Field(description="Calls whose price nobody knows: in no sum.")
    ended: dict[Status, int] = Field(description="Jobs that were accepted in that while and have ended, by how.")
    predicted_usd: Usd = Field(description="Of the ended jobs that have a prediction and a known cost.")
    actual_usd: Usd = Field(description="What those cost.")


class JobsOverview(Frozen):
    """What tracing knows of a tenant's jobs."""

    open: tuple[OpenJobs, ...]
    spent: tuple[SpentLately, ...] = Field(description="Of the last day and of the last seven.")


class GetJobsOverview(Request, subject="jobs.overview.{tenant}", replies=JobsOverview):
    """Ask what goes on."""
