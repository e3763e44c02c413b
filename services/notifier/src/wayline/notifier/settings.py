"""Every knob of the notifier."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings, HttpUrl
from wayline.guarded_http import AddressPolicy
from wayline.store.sealing import SealingKeys


class WebhookKeys(SealingKeys):
    """The notifier's keys by id."""

    variable: ClassVar[str] = "WAYLINE_NOTIFIER_KEYS"


class Settings(EnvironmentSettings):
    """The notifier's own settings, from `WAYLINE_NOTIFIER_…` variables."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_NOTIFIER_")

    keys: SecretStr = Field(
        default=SecretStr(""),
        description="Keys of the secrets of webhooks, `id:base64` of 32 bytes each, parted by commas: the first one "
        "encrypts, all decrypt. Not set: no webhook can be saved. `wayline up` makes one.",
    )
    public_url: HttpUrl | None = Field(
        default=None, description="The gateway's address for links in bodies; none: links are paths."
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts of the inside that webhooks may reach, as JSON: names, addresses or networks, with a port "
        "where it is not one of the web's.",
    )
    http_proxy: SecretStr | None = Field(
        default=None, description="The proxy through which receivers are reached, such as http://proxy.example:3128."
    )
    ca_file: Path | None = Field(
        default=None, description="Certificate authorities in PEM that are trusted beside the public ones."
    )
    timeout_s: float = Field(default=15, gt=0, le=60, description="How long one request may take, its answer included.")
    claim_margin_s: float = Field(
        default=45,
        gt=0,
        description="How long beyond that a process holds a delivery; of one that was killed it is sent again then.",
    )
    webhooks_per_tenant_max: int = Field(default=50, ge=1, description="Webhooks of one tenant.")
    sending_max: int = Field(default=256, ge=1, description="Requests at once in one process.")
    sending_per_tenant_max: int = Field(
        default=16, ge=1, description="Requests of one tenant at once, over all processes."
    )
    sending_per_webhook_max: int = Field(
        default=4, ge=1, description="Requests of one webhook at once, over all processes."
    )
    pending_per_webhook_max: int = Field(
        default=50_000, ge=1, description="Deliveries of one webhook that wait; one with more is disabled."
    )
    failing_days_max: float = Field(
        default=5, gt=0, description="A webhook that has failed for so long without one success is disabled."
    )
    keep_days: int = Field(default=30, ge=1, description="Days that deliveries are kept.")
    upkeep_every_s: float = Field(default=60, gt=0, description="How often what is old or too much is looked for.")
    poll_every_s: float = Field(
        default=1, gt=0, description="How often deliveries of other processes are looked for, and those that are due."
    )
    batch_max: int = Field(default=256, ge=1, description="Messages that are read in one transaction at most.")
    linger_ms: float = Field(default=100, ge=0, description="How long the first message of a batch waits for others.")
    pool_size: int = Field(default=8, ge=2, description="Connections to Postgres.")
    postgres_wait_s: float = Field(default=30, ge=0, description="How long a start waits for Postgres.")

    @field_validator("keys")
    @classmethod
    def _are_keys(cls, keys: SecretStr) -> SecretStr:
        WebhookKeys.parse(keys.get_secret_value())
        return keys

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        AddressPolicy.of(hosts)
        return hosts

    def webhook_keys(self) -> WebhookKeys:
        """Return the keys that encrypt the secrets of webhooks."""
        return WebhookKeys.parse(self.keys.get_secret_value())
