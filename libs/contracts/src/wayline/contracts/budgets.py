"""Budgets: what may be spent, in which window, and what of it is held for jobs that have not ended."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts.base import Frozen, Request, Usd
from wayline.contracts.ids import Name
from wayline.contracts.jobs.latest import RunResult
from wayline.contracts.models import MODEL_CHARS_MAX, PROVIDER_CHARS_MAX, TOKENS_MAX, Slot
from wayline.contracts.money import Dollars

OWN = "job"
"""Who refused, when it was the job's own budget."""
RESERVED = frozenset({OWN, "ended"})
ALERTS_MAX = 10
MODELS_USED_MAX = 100
"""Of one job; what it used of others is not told."""

Window = Literal["job", "hour", "day", "week", "month", "total"]
"""How long a budget lasts; `job`: each job has it anew."""

Share = Annotated[Decimal, Field(gt=0, le=1, decimal_places=6)]
ONE_LINE = r"^[^\x00-\x1f\x7f]*$"


def _free(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name!r} has a meaning of its own; call the budget something else")
    return name


BudgetName = Annotated[Name, AfterValidator(_free)]
TimeZone = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$", max_length=64)]


class BudgetConfig(Frozen):
    """A limit on what a tenant, one of its agents or one of its users spends."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    limit_usd: Dollars
    window: Window = Field(
        default="month", description="It begins anew at the local start of each; `job`: what each job may spend."
    )
    timezone: TimeZone = Field(default="UTC", description="IANA name, for instance `Europe/Berlin`.")
    agent: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=ONE_LINE)] | None = Field(
        default=None, description="Only this agent's jobs."
    )
    user_id: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ONE_LINE)] | None = Field(
        default=None, description="Only this user's jobs."
    )
    hard: bool = Field(default=True, description="No call that could exceed it is made; else it only alerts.")
    alerts: tuple[Share, ...] = Field(
        default=(Decimal("0.8"),), max_length=ALERTS_MAX, description="Shares of the limit at which it alerts."
    )

    @model_validator(mode="after")
    def _hard_for_each_job(self) -> Self:
        if self.window == "job" and not self.hard:
            raise ValueError("a budget for each job is a cap: it is always hard")
        return self


class BudgetAlert(Frozen):
    """A threshold that was reached; told once a window."""

    threshold: Decimal
    at: datetime
    used_usd: Usd
    limit_usd: Usd


class Budget(BudgetConfig):
    """A budget and how much of it is used in its present window.

    `limit_usd` = `spent_usd` + `reserved_usd` + `unsettled_usd` + `left_usd`, while nothing was overspent.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Name
    spent_usd: Usd = Decimal(0)
    reserved_usd: Usd = Field(default=Decimal(0), description="Held by jobs that have not ended.")
    unsettled_usd: Usd = Field(
        default=Decimal(0), description="What may have been spent beside it: a price or the end of a call is unknown."
    )
    unsettled_jobs: int = Field(default=0, description="Ended jobs whose cost is unknown.")
    left_usd: Usd | None = Field(default=None, description="None: every job has it anew.")
    waiting_jobs: int = Field(default=0, description="Jobs that it refused and that have not ended.")
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    raised: tuple[BudgetAlert, ...] = ()


class BudgetList(Frozen):
    """A tenant's budgets as they stand."""

    budgets: tuple[Budget, ...]
    job_budget_usd: Usd = Field(description="What a job may spend where neither it nor a budget says so.")


class BudgetDeleted(Frozen):
    """Whether there was such a budget."""

    deleted: bool


class ListBudgets(Request, subject="budgets.list.{tenant}", replies=BudgetList):
    """Ask for a tenant's budgets, or for the one of that name."""

    name: str | None = None


class PutBudget(Request, subject="budgets.put.{tenant}", replies=Budget):
    """Save a budget. It counts what its present window has seen already; raising it wakes jobs that waited for it."""

    terse = True

    name: BudgetName
    config: BudgetConfig


class DeleteBudget(Request, subject="budgets.delete.{tenant}", replies=BudgetDeleted):
    """Take a budget away; jobs that waited for it go on."""

    name: str


class Settled(Frozen):
    """Whether the reservation was there and is settled."""

    settled: bool


ChargeId = Annotated[str, StringConstraints(pattern=r"^[a-z]+/[a-z0-9]{1,64}$")]
"""What it is for and a number of its own: it shares a table with the ids of jobs, which hold no slash."""


class LeftWarm(Frozen):
    """What a job of a session left in a provider's cache, for the next one: its tools and its system prompt."""

    session_id: Annotated[str, StringConstraints(max_length=128)]
    agent: str
    agent_version: int = Field(description="Another version has another prefix.")
    model: str = Field(description="`provider/model`")
    prefix_tokens: int = Field(ge=0, le=TOKENS_MAX, description="Estimated.")
    until: datetime = Field(description="When the provider has dropped it, if nobody reads it before.")


DENSITY_MAX = 3.0
"""More tokens than that for each estimated one were not counted of the same prompt."""


class ModelUse(Frozen):
    """What a job used of one model in one slot."""

    model: str = Field(max_length=PROVIDER_CHARS_MAX + 1 + MODEL_CHARS_MAX, description="`provider/model`")
    slot: Slot
    calls: int = Field(ge=1, le=TOKENS_MAX, description="That were answered and counted.")
    output_tokens: int = Field(ge=0, le=TOKENS_MAX, description="Of all of them, thinking included.")
    longest_tokens: int = Field(ge=0, le=TOKENS_MAX, description="Of the longest.")
    density: float | None = Field(
        default=None,
        gt=0,
        le=DENSITY_MAX,
        description="Tokens of prompts that its provider counted for each estimated one; null: it counted none.",
    )


class JobUse(Frozen):
    """What a job used, for the predictions of its agent's next jobs."""

    agent: Annotated[str, StringConstraints(max_length=64)]
    tools: int = Field(ge=0, le=TOKENS_MAX, description="Definitions at the head of its prompts.")
    tools_tokens: int = Field(ge=0, le=TOKENS_MAX, description="Estimated.")
    models: tuple[ModelUse, ...] = Field(max_length=MODELS_USED_MAX)


class SettleJob(Request, subject="budgets.settle.{tenant}", replies=Settled):
    """Turn a job's reservation into what it really cost; asking again changes nothing."""

    job_id: str
    cost_usd: Usd | None
    unsettled_usd: Usd = Field(
        default=Decimal(0), ge=0, description="The most that its calls without a known end can have cost beside it."
    )
    left_warm: LeftWarm | None = Field(default=None, description="None: nothing, or the job is of no session.")
    used: JobUse | None = Field(default=None, description="None: no provider answered a call of it.")
    has_session: bool = Field(
        default=True, description="False: it is of no session, so no other job waits for its end. True: it may be."
    )
    result: RunResult | None = Field(default=None, description="What it came to; None: it is no user's own run.")
    remember_for: str | None = Field(
        default=None,
        max_length=128,
        description="The user whose words in it are to be read for what lasts; None: none.",
    )
    summarize_for: str | None = Field(
        default=None,
        max_length=128,
        description="The user of whom what is remembered is to be summarised from time to time; None: none.",
    )
    agent: str | None = Field(default=None, max_length=64, description="The agent of such a job; None: nobody asks.")


class Extended(Frozen):
    """Whether a job may go on spending."""

    granted: bool
    held_usd: Usd = Field(description="What is held for the job now, spent and unspent together.")
    left_usd: Usd | None = Field(default=None, description="What the tightest budget has left; None: no budget.")
    limited_by: str = Field(
        default="", description="The budget that refused; `job`: its own; `ended`: it was settled already."
    )
    resets_at: datetime | None = Field(
        default=None, description="When the budget that refused begins anew, where it ever does."
    )


class ExtendBudget(Request, subject="budgets.extend.{tenant}", replies=Extended):
    """Hold as much for a job as it has spent and its next call can cost; asking again changes nothing."""

    job_id: str
    attempt_id: str = Field(description="The call that needs it.")
    total_usd: Usd | None = Field(
        ge=0,
        description="What the job has spent plus the most its next call can cost. None: the call's price is unknown, "
        "which only a job that no hard budget counts may do.",
    )
    cap_usd: Usd | None = Field(
        default=None, ge=0, description="The job's own budget as its log has it; None: what it was admitted with."
    )
    seq: int = Field(default=0, description="Where in the job's log this is asked.")
    waits: bool = Field(
        default=True, description="Whether the job waits where this is refused: only such a job is woken for room."
    )


class HoldCharge(Request, subject="budgets.hold.{tenant}", replies=Extended):
    """Hold money for a call outside of any job, as an embedding of a document is; asking again changes nothing."""

    charge_id: ChargeId
    usd: Usd | None = Field(ge=0, description="The most that it can cost; None: its price is unknown.")


class ChargeBudgets(Request, subject="budgets.charge.{tenant}", replies=Settled):
    """Count what a call outside of any job cost, whether it was held or not; asking again changes nothing."""

    charge_id: ChargeId
    cost_usd: Usd | None = Field(ge=0, description="None: unknown.")
    unsettled_usd: Usd = Field(
        default=Decimal(0), ge=0, description="The most that it can have cost beside it, where nobody knows."
    )


class Released(Frozen):
    """What was given back."""

    released_usd: Usd


class ReleaseBudget(Request, subject="budgets.release.{tenant}", replies=Released):
    """Give back what a parked job holds and has not spent."""

    job_id: str
    spent_usd: Usd = Field(ge=0, description="The most it can have cost; that much stays held.")
    seq: int = Field(
        default=0, description="Where in the job's log it parked: after a later ExtendBudget this changes nothing."
    )
