"""Reservations: what a job may spend, held from its first record to its end."""

from __future__ import annotations

from decimal import Decimal

from pydantic import Field

from wayline.contracts.base import Frozen, Request


class Settled(Frozen):
    settled: bool


class SettleJob(Request, subject="budgets.settle.{tenant}", replies=Settled):
    """Turn a job's reservation into what it really cost; asking again changes nothing."""

    job_id: str
    cost_usd: Decimal | None
    unsettled_usd: Decimal = Field(
        default=Decimal(0), ge=0, description="The most that its calls without a known end can have cost beside it."
    )


class Extended(Frozen):
    """Whether a job may go on spending."""

    granted: bool
    held_usd: Decimal = Field(description="What is held for the job now, spent and unspent together.")
    left_usd: Decimal | None = Field(default=None, description="What the tightest budget has left; None: no budget.")
    limited_by: str = Field(default="", description="The budget that refused.")


class ExtendBudget(Request, subject="budgets.extend.{tenant}", replies=Extended):
    """Hold as much for a job as it has spent and its next call can cost; asking again changes nothing."""

    job_id: str
    attempt_id: str = Field(description="The call that needs it.")
    total_usd: Decimal | None = Field(
        ge=0,
        description="What the job has spent plus the most its next call can cost. None: the call's price is unknown, "
        "which only a job that no hard budget counts may do.",
    )
    cap_usd: Decimal | None = Field(
        default=None, ge=0, description="The job's own budget as its log has it; None: what it was admitted with."
    )
    seq: int = Field(default=0, description="Where in the job's log this is asked.")


class Released(Frozen):
    released_usd: Decimal


class ReleaseBudget(Request, subject="budgets.release.{tenant}", replies=Released):
    """Give back what a parked job holds and has not spent."""

    job_id: str
    spent_usd: Decimal = Field(ge=0, description="The most it can have cost; that much stays held.")
    seq: int = Field(
        default=0, description="Where in the job's log it parked: after a later ExtendBudget this changes nothing."
    )
