"""Which model takes a job, and why."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wayline.contracts.agents import AgentConfig
from wayline.contracts.base import Frozen, Request, Usd
from wayline.contracts.ids import Name
from wayline.contracts.jobs.status import Failure
from wayline.contracts.jobs.submission import SubmitJob
from wayline.contracts.models import Slot, Tier


class Complexity(Frozen):
    """How hard a job looks, from its input alone."""

    score: float = Field(ge=0, le=1, description="How hard beside other texts; a longer one is harder.")
    content: float | None = Field(
        default=None, ge=0, le=1, description="How demanding its words are, whatever their number."
    )
    level: Literal["simple", "moderate", "complex"]
    needs_reasoning: bool = False


class Route(Frozen):
    """Which model takes a job, and why in one sentence."""

    provider: str
    model: str
    tier: Tier
    reason: str
    slot: Slot = "primary"
    task_type: str | None = None
    classifier: str | None = Field(
        default=None,
        description="The `provider/model` that is asked for the type of task before the first call; the route may "
        "change with its answer.",
    )
    complexity: Complexity | None = None
    estimated_cost_usd: Usd | None = Field(default=None, description="Expected; None: the price is unknown.")
    estimated_cost_range_usd: tuple[Usd, Usd] | None = Field(
        default=None, description="The least and the most it may cost."
    )

    @property
    def name(self) -> str:
        """Return `provider/model`."""
        return f"{self.provider}/{self.model}"


class Planned(Frozen):
    """What would become of a job: nothing ran."""

    agent: str
    agent_version: int
    route: Route
    refusal: Failure | None = Field(
        default=None, description="Why the job would be refused before anything is spent; None: it would run."
    )


class AgentCheck(Frozen):
    """What an agent would be, were it saved."""

    problems: tuple[Failure, ...] = Field(default=(), description="Why it could not be saved, or its jobs would fail.")
    warnings: tuple[str, ...] = ()
    instructions_tokens: int = Field(ge=0, description="Of its whole system prompt, estimated.")
    tools_tokens_seen: int | None = Field(
        default=None, description="Of the tool definitions of the agent's last job; null: none was seen lately."
    )
    slots: dict[Slot, str] = Field(
        default_factory=dict,
        description="The `provider/model` that each slot comes to now, where one fits.",
    )
    route: Route | None = Field(
        default=None,
        description="Of a short job, with what it is expected to cost, by the agent's recent jobs if any.",
    )


class CheckAgent(Request, subject="agents.check.{tenant}", replies=AgentCheck):
    """Ask what an agent would be, without saving it."""

    terse = True

    name: Name
    config: AgentConfig


class PlanJob(Request, subject="jobs.plan.{tenant}", replies=Planned):
    """Decide a job's route and its predicted cost without running it."""

    terse = True

    job: SubmitJob

    @property
    def owner(self) -> str:
        """Return the job, so that what is stored of it is erased with it."""
        return self.job.job_id or "-"
