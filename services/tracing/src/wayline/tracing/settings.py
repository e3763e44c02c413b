"""Every knob of tracing."""

from __future__ import annotations

from typing import Final

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings, HttpUrl

LABELS_MAX: Final = 1_000
LABELS_PER_TENANT_MAX: Final = 200


class Settings(EnvironmentSettings):
    """Tracing's own settings, from `WAYLINE_TRACING_…` variables."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_TRACING_")

    batch_max: int = Field(default=512, ge=1, description="Messages written in one transaction at most.")
    linger_ms: float = Field(default=250, ge=0, description="How long the first message of a batch waits for others.")
    idle_linger_ms: float = Field(
        default=5,
        ge=0,
        description="How long it waits while few messages come, as those of a job or two a second: a trace is whole a "
        "moment after its job.",
    )
    busy_linger_ms: float = Field(
        default=1_000,
        ge=0,
        description="How long it waits after a batch of at least an eighth of the most: rows of jobs that go on are "
        "written less often then.",
    )
    jobs_in_memory_max: int = Field(default=2_000, ge=1, description="Running jobs whose fold is kept in memory.")
    spans_days: int = Field(default=7, ge=1, le=3_660, description="Days that spans are kept.")
    received_spans_hourly_max: int = Field(
        default=500_000,
        ge=1,
        description="Spans that a tenant's own programs may send in an hour; more are rejected.",
    )
    ledger_days: int = Field(default=400, ge=1, description="Days that jobs, steps and the ledger are kept.")
    keep_every_s: float = Field(default=3_600, gt=0, description="How often what is too old is removed.")
    drift_every_s: float = Field(
        default=60,
        gt=0,
        description="How often new records are compared with the tables, and some of the others.",
    )
    gauges_every_s: float = Field(default=10, gt=0, description="How often queue lag and cost are read for metrics.")
    labels_max: int = Field(
        default=LABELS_MAX,
        ge=1,
        description="Agents, and tools, that metrics of a process tell apart; later ones are `other`. Of the ledger so "
        "many pairs of model and agent, those of most calls.",
    )
    labels_per_tenant_max: int = Field(
        default=LABELS_PER_TENANT_MAX, ge=1, description="Of these, how many one tenant's jobs may bring."
    )
    otlp_endpoint: HttpUrl | None = Field(
        default=None,
        description="An OTLP/HTTP collector, for instance http://localhost:4318; none: as OTEL_EXPORTER_OTLP_ENDPOINT "
        "and its like say.",
    )
    otlp_headers: str = Field(default="", description="Headers for the collector: `name=value,name=value`.")
    otlp_timeout_s: float | None = Field(
        default=None,
        gt=0,
        description="Of one export with all its tries; none: as OTEL_EXPORTER_OTLP_TIMEOUT says, else 10.",
    )
    dialects: str = Field(
        default="",
        description="Receivers whose own names for cost, session and usage are added to forwarded spans: "
        "`openinference,langfuse,mlflow`.",
    )
    pool_size: int = Field(default=6, ge=2, description="Connections to Postgres.")
    postgres_wait_s: float = Field(default=30, ge=0, description="How long a start waits for Postgres.")
