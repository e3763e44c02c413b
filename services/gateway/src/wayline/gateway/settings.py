"""The gateway's settings."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings, HttpUrl

MIB = 1024 * 1024

PerMinute: TypeAlias = Annotated[int | None, Field(ge=1, le=1_000_000)]


def _origin(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or text != f"{parts.scheme}://{parts.netloc}":
        raise ValueError(f"{text!r} is no origin: name scheme, host and port alone, such as https://app.example")
    return text


class Settings(EnvironmentSettings):
    """Settings of the gateway: `WAYLINE_HTTP_…` is shared with its clients, `WAYLINE_GATEWAY_…` is its own."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_GATEWAY_", populate_by_name=True)

    http_host: str = Field(default="127.0.0.1", validation_alias="WAYLINE_HTTP_HOST")
    http_port: int = Field(default=8080, ge=0, le=65_535, validation_alias="WAYLINE_HTTP_PORT")
    public_url: HttpUrl | None = Field(
        default=None,
        description="Where browsers reach this gateway, such as `https://wayline.example`: they log in to MCP servers "
        "from there, and come back; https keeps the login's cookie the gateway's own. None: `http://127.0.0.1:` with "
        "the port.",
    )
    console_url: HttpUrl | None = Field(
        default=None, description="Where people reach the console, for links to it. None: nowhere is said."
    )
    grafana_url: HttpUrl | None = Field(default=None, description="The same of Grafana.")
    body_max_bytes: int = Field(default=8 * MIB, ge=1, description="A larger request body is refused with 413.")
    document_max_bytes: int = Field(default=64 * MIB, ge=1, description="The same for an uploaded document.")
    wait_max_s: float = Field(default=60.0, gt=0, description="The longest `?wait=` that is honoured.")
    streams_max: int = Field(
        default=5_000,
        ge=1,
        description="Clients that may follow jobs, wait for them, or hear of changes over `/mcp`, at the same time.",
    )
    streams_per_tenant_max: int = Field(
        default=2_000, ge=1, description="The same of one tenant's keys together, in one gateway process."
    )
    streams_per_key_max: int = Field(default=1_000, ge=1, description="The same of one key.")
    event_streams_per_tenant_max: int = Field(
        default=200,
        ge=1,
        description="Clients of one tenant that may follow all its jobs by `/v1/events` in one gateway process; they "
        "count among the others too.",
    )
    connections_max: int = Field(
        default=10_000,
        ge=1,
        description="Connections that the port takes; fewer where the system allows this process fewer open files.",
    )
    connections_per_address_max: int | None = Field(
        default=None,
        ge=1,
        description="The same from one address; none: half of them. A proxy is one address: behind it, as many as all.",
    )
    request_within_s: float = Field(
        default=15.0, gt=0, description="How long the head of a request may take, counted from its connection."
    )
    body_silent_s: float = Field(default=30.0, gt=0, description="How long a request's body may pause.")
    write_stalled_s: float = Field(
        default=30.0, gt=0, description="How long a client may leave its answer unread before it loses its place."
    )
    idle_s: int = Field(
        default=75,
        ge=1,
        description="How long a connection may rest between two requests, unless another one needs its place. It is "
        "more than a load balancer's own time, often 60 s, which would use a connection that has just been closed.",
    )
    mcp_wait_max_s: float = Field(
        default=600.0, gt=0, description="How long `run_agent` over `/mcp` waits for a job; after that the job goes on."
    )
    mcp_origins: tuple[str, ...] = Field(
        default=(),
        description="Origins of web pages that may use `/mcp`, such as `https://chat.example`; pages of this machine "
        "always may.",
    )
    cors_origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = Field(
        default=(),
        description="Origins of web pages that may use `/v1` and `/openai` with a key of their own, such as "
        "`https://app.example`; never with cookies. None: no page may.",
    )
    openai_wait_max_s: float = Field(
        default=600.0,
        gt=0,
        description="How long a request of `/openai/v1` that is not streamed waits for its job; it is answered 504 "
        "then, and finds the same job when it is sent again.",
    )
    openai_cancels_abandoned: bool = Field(
        default=True,
        description="Cancel the job of an `/openai/v1` request whose client has left, unless it comes back.",
    )
    openai_abandoned_after_s: float = Field(
        default=10.0, ge=0, description="How long such a client has to send its request again."
    )
    access_log: bool = Field(
        default=True,
        description="Log a line a request: method, route, status, duration, tenant, ids of key and trace, and nothing "
        "that the request holds.",
    )
    keys_max: int = Field(default=1_000, ge=1, description="Valid API keys of one tenant.")
    tenant_requests_per_minute: PerMinute = Field(
        default=None,
        description="Requests that a tenant's keys may send together, where `PUT /v1/tenants/{tenant}/limits` says "
        "nothing else. None: as many as they come.",
    )
    key_requests_per_minute: PerMinute = Field(default=None, description="The same of each key.")
    user_requests_per_minute: PerMinute = Field(default=None, description="The same of each user that a key acts for.")
    tenant_jobs_per_minute: PerMinute = Field(
        default=None, description="Jobs that a tenant's keys may begin together, likewise."
    )
    key_jobs_per_minute: PerMinute = Field(default=None, description="The same of each key.")
    user_jobs_per_minute: PerMinute = Field(default=None, description="The same of each user that jobs name.")
    pool_size: int = Field(default=10, ge=2, description="Connections to Postgres.")
    postgres_wait_s: float = Field(default=30.0, ge=0, description="How long a start waits for Postgres.")

    @property
    def reached_at(self) -> str:
        """Return where browsers reach this gateway, without a slash at the end."""
        return (str(self.public_url) if self.public_url else f"http://127.0.0.1:{self.http_port}").rstrip("/")

    @property
    def loopback(self) -> bool:
        """Return whether only this machine can reach the port."""
        if self.http_host == "localhost":
            return True
        try:
            return ip_address(self.http_host).is_loopback
        except ValueError:
            return False
