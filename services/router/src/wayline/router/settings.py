"""Every knob of the router."""

from __future__ import annotations

from decimal import Decimal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """From `WAYLINE_ROUTER_…` variables."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_ROUTER_", frozen=True, extra="ignore")

    default_model: str = Field(
        default="offline/extractive", description="`provider/model` of jobs whose agent and options name none."
    )
    slots: int = Field(default=64, description="Messages of one kind handled at once.")
    tenants_fresh_s: float = Field(default=5.0, description="How long a known tenant is believed without asking.")
    job_budget_usd: Decimal = Field(
        default=Decimal("0.10"), ge=0, description="What a job may spend where neither it nor a budget says so."
    )
    budgets_every_s: float = Field(
        default=2.0, gt=0, description="How often waiting jobs are looked for that fit their budget again."
    )
