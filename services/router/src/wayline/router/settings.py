"""Every knob of the router."""

from __future__ import annotations

from decimal import Decimal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings
from wayline.llm.endpoints import EndpointSettings


class Settings(EnvironmentSettings, EndpointSettings):
    """From `WAYLINE_ROUTER_…` variables, and the shared ones that name a model endpoint."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_ROUTER_", populate_by_name=True)

    default_model: str = Field(
        default="offline/extractive",
        pattern=r"^[^/\s]+/\S+$",
        description="`provider/model` of jobs whose agent and options name none.",
    )
    slots: int = Field(default=16, ge=1, description="Messages of one kind handled at once.")
    tenants_fresh_s: float = Field(default=5.0, ge=0, description="How long a known tenant is believed without asking.")
    tenants_max: int = Field(default=10_000, ge=1, description="Tenants of one installation.")
    models_fresh_s: float = Field(
        default=5.0,
        ge=0,
        description="How long a tenant's models are believed without asking; its own changes show at once.",
    )
    models_max: int = Field(default=500, ge=0, description="Models of its own that a tenant may have.")
    files_max: int = Field(default=32, ge=0, description="Images and files that one job may be given.")
    files_max_bytes: int = Field(
        default=24_000_000, ge=0, description="What they may have together; each executor holds them in memory."
    )
    stored_per_tenant_max_bytes: int = Field(
        default=2 * 1024**3,
        ge=1,
        description="What the job logs and payloads of one tenant take on the bus, of 30 days; its next job is a 429.",
    )
    unfinished_per_tenant_max: int = Field(
        default=20_000, ge=1, description="Jobs of one tenant that wait for an executor or run; its next one is a 429."
    )
    turns_waiting_max: int = Field(
        default=1_000,
        ge=1,
        description="Jobs of one session that have not ended; one more is refused (`session_full`).",
    )
    providers: tuple[str, ...] | None = Field(
        default=None,
        description="Providers that executors can call, as JSON, where the router does not see their variables.",
    )
    job_budget_usd: Decimal = Field(
        default=Decimal("0.10"), ge=0, description="What a job may spend where neither it nor a budget says so."
    )
    share_lanes: bool = Field(
        default=True,
        description="Whether tenants that wait in a lane get turns by their weights; false: first come, first served.",
    )
    usage_every_s: float = Field(
        default=5.0, gt=0, description="How often what an agent's ended jobs used is written, and read for predictions."
    )
    schedules_every_s: float = Field(default=1.0, gt=0, description="How often due schedules are looked for.")
    schedules_max: int = Field(default=1_000, ge=0, description="Schedules that a tenant may have.")
    schedules_least_interval_s: float = Field(
        default=60.0, ge=0, description="The least time between two firings of a schedule."
    )
    schedules_missed_max_s: float = Field(
        default=86_400.0,
        ge=0,
        le=7 * 86_400,
        description="How late a missed firing is still made up for; one that is older is skipped.",
    )
    extraction_quiet_s: float = Field(
        default=600.0,
        gt=0,
        description="How long after its last turn a session is read for what lasts, of agents with `extract_memories`.",
    )
    extraction_every_s: float = Field(
        default=30.0, gt=0, description="How often sessions are looked for that have gone quiet."
    )
    extraction_budget_usd: Decimal | None = Field(
        default=None,
        gt=0,
        description="What reading a session for what lasts, or summarising what is remembered of a user, may cost "
        "at most; unset: what a job of its agent may.",
    )
    summary_every_s: float = Field(
        default=7 * 86_400.0,
        gt=0,
        description="How long after one summary of what is remembered of a user the next one is made, of agents with "
        "`summarize_memories`.",
    )
    budgets_every_s: float = Field(
        default=2.0, gt=0, description="How often waiting jobs are looked for that fit their budget again."
    )
    budget_labels_max: int = Field(
        default=1_000,
        ge=1,
        description="Budgets whose figures metrics show, those nearest to their limit; "
        "`wayline_budgets_unshown` counts the others.",
    )
    budget_labels_per_tenant_max: int = Field(default=20, ge=1, description="Of these, how many may be one tenant's.")
    pool_size: int = Field(default=10, ge=2, description="Connections to Postgres.")

    def reachable(self) -> dict[str, str]:
        """Return the base URL of each provider that a job can be sent to; empty where only its name is known."""
        found = {name: endpoint.base_url for name, endpoint in self.endpoints().items()}
        return found if self.providers is None else {name: found.get(name, "") for name in self.providers}
