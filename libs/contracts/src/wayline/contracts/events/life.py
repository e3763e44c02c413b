"""A job's life as a whole: submitted, claimed, parked and resumed, told to stop or to spend more, ended."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from wayline.contracts.base import Usd
from wayline.contracts.chat import Citation
from wayline.contracts.events.event import Event
from wayline.contracts.jobs import Failure, FiredBy, Origin, Parent, SubmitJob, SubmittedBy, Turn, Waiting
from wayline.contracts.money import Usage


class JobSubmitted(Event):
    """A job was asked for, in these words; the first event of every log."""

    type: Literal["job.submitted"] = "job.submitted"
    tenant: str
    job: SubmitJob
    content_hash: str
    reply_to: str | None = None
    caller: str | None = Field(default=None, description="The caller's `traceparent`: a link, never our parent.")
    turn: Turn | None = Field(default=None, description="Its place in its session; None: it is of none.")
    schedule: FiredBy | None = Field(default=None, description="The schedule that submitted it; None: none did.")
    parent: Parent | None = Field(default=None, description="The job that started it; None: a client did.")
    submitted_by: SubmittedBy | None = Field(default=None, description="None: a version before wrote the log.")


class JobForked(Event):
    """The job begins with what another one was told and did until some event; none of it is done or paid for again."""

    type: Literal["job.forked"] = "job.forked"
    origin: Origin
    prefix: tuple[dict[str, Any], ...] = Field(
        default=(), description="The other job's events that make its conversation, with the changes asked for."
    )


class JobClaimed(Event):
    """An executor has taken the job, and is the only one to append from here on."""

    type: Literal["job.claimed"] = "job.claimed"
    executor: str
    epoch: int = Field(description="How often the job was claimed, this claim included.")
    owner: str = Field(description="`<ticket stream sequence>:<delivery>` of the run ticket.")
    attempt: int = Field(description="Claims in a row without progress, this one included.")


class JobHandedBack(Event):
    """Its holder gave it back alive, for instance to be stopped: a claim that ends so is none without progress."""

    type: Literal["job.handed_back"] = "job.handed_back"
    reason: str = ""


class JobParked(Event):
    """The job waits, and no executor holds it."""

    type: Literal["job.parked"] = "job.parked"
    waiting: Waiting
    signals_seen: int
    kept_usd: Usd | None = Field(
        default=None, description="What stays held for it: no more than it can have cost; None: nothing was held."
    )


class JobResumed(Event):
    """The job waits no more and goes on."""

    type: Literal["job.resumed"] = "job.resumed"


class CancelRequested(Event):
    """A client asked the job to stop."""

    type: Literal["job.cancel_requested"] = "job.cancel_requested"
    reason: str = ""
    by: str = ""


class BudgetRaised(Event):
    """A client lets the job spend more."""

    type: Literal["budget.raised"] = "budget.raised"
    budget_usd: Usd
    by: str = ""


class Ended(Event):
    """What every terminal event carries: the sums of the whole job."""

    steps: int = 0
    usage: Usage = Usage()
    cost_usd: Usd | None = Decimal(0)


class JobCompleted(Ended):
    """The job has its answer, or what there was of one at a limit."""

    type: Literal["job.completed"] = "job.completed"
    answer: str
    citations: tuple[Citation, ...] = ()
    partial: bool = Field(default=False, description="A limit was reached: the answer is what there was until then.")
    reason: str | None = Field(
        default=None, description="Which limit, where the answer is partial; or why it is not all that was asked for."
    )


class JobFailed(Ended):
    """The job ended without an answer."""

    type: Literal["job.failed"] = "job.failed"
    error: Failure


class JobCancelled(Ended):
    """The job was stopped on request."""

    type: Literal["job.cancelled"] = "job.cancelled"
    reason: str = ""
    by: str = ""
