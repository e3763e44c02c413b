"""Tickets to run a job."""

from __future__ import annotations

from pydantic import Field

from wayline.contracts.base import Frozen, Message, Request


class Carried(Frozen):
    """A record of a job's log as it stands there."""

    said: str = Field(description="Its header, for instance `state=new seq=2 …`.")
    body: str


def backlog_of(lane: str) -> str:
    """Return the name of a lane's backlog, as its tickets and their consumer have it."""
    return f"{lane}_backlog"


def waiting_of(lane: str) -> str:
    """Return the name under which a lane's tickets wait for their tenant's turn: the router alone takes them."""
    return f"{lane}_waiting"


class RunJob(Message, subject="jobs.run.{lane}.{tenant}"):
    """A run ticket: the job may go on from the record at stream sequence `at`."""

    lane: str = Field(default="interactive", exclude=True)
    job: str
    at: int
    record: Carried | None = Field(
        default=None, description="The record at `at`, where it is small: the next executor need not read it."
    )

    @property
    def msg_id(self) -> str:
        """Return the id of the ticket: the same for everyone who queues the job from the same record."""
        return f"{self.tenant}/{self.job}:{self.at}"


class JobWoken(Frozen):
    """The job is queued."""


class WakeJob(Request, subject="jobs.wake.{tenant}", replies=JobWoken):
    """Queue a parked job that has something to read, where its tenant's turn in the lane has it; again is harmless."""

    job_id: str
    at: int = Field(description="The record that parked it.")
    lane: str
