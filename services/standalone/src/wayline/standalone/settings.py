"""Settings of `wayline up`, `serve`, `migrate` and `doctor`; each service reads its own."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings, HttpUrl, NatsServers, NkeySeed, Port, PostgresDsn
from wayline.chassis.topology import Limits


class Settings(EnvironmentSettings):
    """Settings from `WAYLINE_…` variables; an empty one counts as not set."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_")

    data_dir: Path = Field(default=Path(".wayline"), description="Data, credentials and logs of one installation.")
    nats_url: NatsServers | None = Field(default=None, description="A bus of your own, instead of the embedded one.")
    nats_seed: NkeySeed | None = Field(default=None, description="The nkey seed for that bus; not set: none.")
    nats_accounts_file: Path | None = Field(
        default=None,
        description="The file of accounts that a bus of your own includes; not set: the embedded bus's.",
    )
    nats_port: Port = 4222
    nats_monitor_port: Port | None = Field(default=None, description="Port of NATS's monitoring page; not set: none.")
    nats_monitor_url: HttpUrl | None = Field(default=None, description="The monitoring page of your own bus.")
    postgres_dsn: PostgresDsn | None = Field(
        default=None, description="A database of your own; `up` and `migrate` administer it."
    )
    postgres_admin_dsn: PostgresDsn | None = Field(
        default=None, description="The address for its administrator, if that is another role."
    )
    postgres_port: Port | None = Field(default=None, description="Not set: a free one, used again at the next start.")
    http_host: str = "127.0.0.1"
    http_port: Port = 8080
    console: bool = Field(default=True, description="Whether `up` starts the console beside the services.")
    console_port: Port = 8081
    health_host: str = "127.0.0.1"
    health_port: Port | None = Field(default=None, description="Port of probes and metrics of `serve`; not set: none.")
    ack_wait_s: float = Field(default=10.0, gt=0, description="How soon a killed executor's jobs are taken over.")
    replicas: int = Field(default=1, ge=1, le=5, description="Copies of each stream in a NATS cluster.")
    submit_per_tenant_max: int = Field(
        default=8_000, ge=1, description="Submissions of one tenant that wait for the router; the next is a 429."
    )
    index_per_tenant_max: int = Field(
        default=2_000, ge=1, description="Documents of one tenant that wait to be indexed; the next is a 429."
    )
    dead_per_tenant_max: int = Field(
        default=1_000,
        ge=1,
        description="Dead letters of one tenant for each consumer; beyond it the tenant's oldest are dropped.",
    )
    log: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("log", "log_level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @property
    def limits(self) -> Limits:
        """Return the limits with which the streams are declared."""
        return Limits(
            replicas=self.replicas,
            ack_wait_s=self.ack_wait_s,
            submit_max_per_tenant=self.submit_per_tenant_max,
            index_max_per_tenant=self.index_per_tenant_max,
            dead_max_per_tenant=self.dead_per_tenant_max,
        )

    @property
    def admin_dsn(self) -> str | None:
        """Return the address as the role that may create schemas and roles, in a database of your own."""
        return self.postgres_admin_dsn or self.postgres_dsn
