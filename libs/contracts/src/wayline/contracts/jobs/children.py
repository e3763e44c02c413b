"""Jobs that other jobs start."""

from __future__ import annotations

from decimal import Decimal

from pydantic import Field

from wayline.contracts.base import Frozen, Request, Usd
from wayline.contracts.ids import Name
from wayline.contracts.jobs.status import Status
from wayline.contracts.jobs.submission import Lane


class Parent(Frozen):
    """The call of `run_agent` by which a job was started."""

    job_id: str
    step: int
    call: str
    depth: int = Field(ge=1, description="How many jobs are above: 1 for what a client's own job started.")
    tainted_by: str | None = Field(
        default=None, description="The untrusted tool whose words the task may hold, because the parent had read them."
    )
    ask_when_tainted: bool = Field(
        default=False, description="The parent's agent asks a person once tainted: so does this job, whatever its own."
    )
    ask_egress: bool = Field(default=False, description="The same of calls of untrusted tools.")


class Child(Frozen):
    """A job that another one started."""

    job_id: str
    agent: str
    step: int
    call: str
    status: Status | None = Field(default=None, description="How it ended, once its parent has read that.")
    cost_usd: Usd | None = Field(
        default=Decimal(0), description="With what it started itself; null: a price is unknown, or it went on alone."
    )


PARENT_CANCELLED = "the job that started it was cancelled"


PARENT_LATE = "the job that started it has no time left"


class ChildState(Frozen):
    """A job that another one started, as far as it is."""

    job_id: str
    ended: bool


class StartChild(Request, subject="jobs.start.{tenant}", replies=ChildState):
    """Start the job of a call of `run_agent`; asking again starts nothing more.

    With `stop`, end it instead: it is cancelled, and one that was not started yet never will be.
    """

    terse = True

    parent: Parent
    agent: Name
    input: str
    user_id: str | None = None
    lane: Lane = "interactive"
    max_seconds: float = Field(gt=0, description="What is left of its parent's time.")
    stop: str | None = Field(default=None, description="Why it shall end.")

    @property
    def owner(self) -> str:
        """Return the job that starts it, so that what is stored is erased with them."""
        return self.parent.job_id
