"""Settings of `wayline up`, `serve`, `migrate` and `doctor`; each service reads its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import ByteSize, Field, field_validator
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings, HttpUrl, NatsServers, NkeySeed, Port, PostgresDsn
from wayline.chassis.stream_limits import AGED, SIZED, Limits
from wayline.chassis.topology import BUCKETS, DAY_S, PAYLOADS
from wayline.contracts.jobs.submission import SECONDS_MAX

STAYS = "Once chosen it stays, without being set again."
Days = Annotated[float, Field(gt=0, le=3_650)]
LOGS = frozenset({"EVENTS", PAYLOADS, "SIGNALS", "LATER"})
"""What a job needs as long as it lives."""
T = TypeVar("T")


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
    ack_wait_s: float | None = Field(
        default=None, gt=0, description=f"How soon a killed executor's jobs are taken over; at first 10. {STAYS}"
    )
    replicas: int | None = Field(
        default=None, ge=1, le=5, description=f"Copies of each stream in a NATS cluster; at first 1. {STAYS}"
    )
    submit_per_tenant_max: int | None = Field(
        default=None,
        ge=1,
        description=f"Submissions of one tenant that wait for the router; the next is a 429. At first 8000. {STAYS}",
    )
    index_per_tenant_max: int | None = Field(
        default=None,
        ge=1,
        description=f"Documents of one tenant that wait to be indexed; the next is a 429. At first 2000. {STAYS}",
    )
    dead_per_tenant_max: int | None = Field(
        default=None,
        ge=1,
        description="Dead letters of one tenant for each consumer; beyond it the tenant's oldest are dropped. "
        f"At first 1000. {STAYS}",
    )
    stream_max_bytes: dict[str, ByteSize] = Field(
        default={}, description=f'How much a stream or a store may hold, as JSON: `{{"EVENTS": "20GiB"}}`. {STAYS}'
    )
    stream_max_days: dict[str, Days] = Field(
        default={},
        description=f'How long a stream or a store keeps what it holds, as JSON: `{{"EVENTS": 90}}`. {STAYS}',
    )
    log: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("log", "log_level", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @field_validator("stream_max_bytes")
    @classmethod
    def _sized(cls, chosen: dict[str, ByteSize]) -> dict[str, ByteSize]:
        return _of_streams(chosen, SIZED)

    @field_validator("stream_max_days")
    @classmethod
    def _aged(cls, chosen: dict[str, float]) -> dict[str, float]:
        chosen = _of_streams(chosen, AGED)
        for name in sorted(chosen.keys() & LOGS):
            if chosen[name] * DAY_S <= SECONDS_MAX:
                days = SECONDS_MAX / DAY_S
                raise ValueError(f"{name} needs more than {days:g} days: a job may take as long, and its log must last")
        return chosen

    @property
    def limits(self) -> Limits:
        """Return the limits that are chosen for streams and stores."""
        return Limits(
            replicas=self.replicas,
            ack_wait_s=self.ack_wait_s,
            submit_max_per_tenant=self.submit_per_tenant_max,
            index_max_per_tenant=self.index_per_tenant_max,
            dead_max_per_tenant=self.dead_per_tenant_max,
            max_bytes=self.stream_max_bytes,
            max_age_s={name: days * DAY_S for name, days in self.stream_max_days.items()},
        )

    @property
    def admin_dsn(self) -> str | None:
        """Return the address as the role that may create schemas and roles, in a database of your own."""
        return self.postgres_admin_dsn or self.postgres_dsn

    @property
    def pooler_dsn(self) -> str | None:
        """Return the address of services where a pooler of transactions is there; None: it is the administrator's."""
        from wayline.store.pooler import read_pool_mode

        return self.postgres_dsn if self.postgres_dsn and read_pool_mode(self.postgres_dsn)[1] else None


def _of_streams(chosen: dict[str, T], known: Iterable[str]) -> dict[str, T]:
    """Return what is chosen by the names of streams and stores; alerts name a store by the stream that holds it."""
    stores = {bucket.stream: bucket.name for bucket in BUCKETS}
    chosen = {stores.get(name, name): value for name, value in chosen.items()}
    if unknown := sorted(chosen.keys() - set(known)):
        raise ValueError(f"there is no {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return chosen
