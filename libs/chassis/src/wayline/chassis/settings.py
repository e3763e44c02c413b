"""What every service shares: where the bus is, who it is there, and where its probes answer."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from wayline.contracts.errors import Unavailable


class BusSettings(BaseSettings):
    """Shared settings, from `WAYLINE_…` variables."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_", frozen=True, extra="ignore")

    nats_url: str = Field(default="nats://127.0.0.1:4222", description="Comma-separated servers of the bus.")
    nats_seed: str | None = Field(default=None, description="The service's nkey seed; none: connect without one.")
    postgres_dsn: str | None = Field(default=None, description="The service's own database role.")
    health_port: int | None = Field(default=None, description="Probes and metrics listen here; none: nowhere.")
    health_host: str = "127.0.0.1"
    drain_grace_s: float = Field(default=20.0, description="How long work in hand may go on after the first SIGTERM.")
    connect_wait_s: float = Field(default=30.0, description="How long a start waits for the bus.")

    def dsn_of(self, service: str) -> str:
        """The service's database. Raises Unavailable, naming the variable, when nobody has said where it is."""
        if self.postgres_dsn is None:
            raise Unavailable(
                "Postgres",
                detail=f"WAYLINE_POSTGRES_DSN is not set, so {service} does not know its database "
                "(`wayline up` starts one by itself)",
            )
        return self.postgres_dsn
