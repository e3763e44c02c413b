"""What the console is told by its environment."""

from __future__ import annotations

from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

COOKIE_KEY_BYTES = 32


class Settings(BaseSettings):
    """Settings of the console."""

    model_config = SettingsConfigDict(
        env_prefix="WAYLINE_CONSOLE_", frozen=True, extra="ignore", env_ignore_empty=True, hide_input_in_errors=True
    )

    host: str = Field(default="127.0.0.1", description="Where the console listens.")
    port: int = Field(default=8081, ge=1, le=65_535, description="Its port.")
    gateway_url: str = Field(default="http://127.0.0.1:8080", description="Where it reaches the HTTP API.")
    public_url: str | None = Field(
        default=None,
        description="Its address in browsers, where that is not one of this machine: `https://console.example.com`. "
        "Requests that name another host are refused.",
    )
    cookie_key: SecretStr | None = Field(
        default=None,
        description="64 hexadecimal digits that seal the cookie with a signed-in person's API key. Not set: drawn at "
        "each start, after which everybody signs in again; replicas need the same one.",
    )
    document_max_bytes: int = Field(
        default=64 * 1024 * 1024,
        ge=1,
        description="A larger form of documents is refused with 413: as much as the gateway takes of one document.",
    )
    time_zone: str = Field(default="UTC", description="The zone of the times that pages show.")

    @field_validator("gateway_url", "public_url")
    @classmethod
    def _is_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise ValueError("this is not of the form http://host:port")
        return url.rstrip("/")

    @field_validator("cookie_key")
    @classmethod
    def _is_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None:
            try:
                drawn = bytes.fromhex(key.get_secret_value())
            except ValueError:
                drawn = b""
            if len(drawn) != COOKIE_KEY_BYTES:
                raise ValueError("this is not 64 hexadecimal digits: `openssl rand -hex 32` draws some")
        return key

    @field_validator("time_zone")
    @classmethod
    def _is_zone(cls, name: str) -> str:
        if name not in available_timezones():
            raise ValueError("this is no IANA time zone such as Europe/Zurich")
        return name

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)
