"""What every service shares: where the bus is, who it is there, and where its probes answer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import SplitResult, urlsplit

import nkeys
from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from wayline.contracts.errors import Unavailable, WrongSetting
from wayline.contracts.nearest import nearest_names

ALIKE_MIN = 0.7
"""How alike, of 1, an unknown variable and a setting must be, both without their prefix, before one is suggested."""
_FIELD = re.compile(r'field "(\w+)"')


class EnvironmentSettings(BaseSettings):
    """Settings from variables, an empty one counting as not set; a wrong one is a WrongSetting that names it."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, env_ignore_empty=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of values, in their order: no files, for which every field would be looked up again."""
        return (init_settings, env_settings) if cls._is_any_set(os.environ) else (init_settings,)

    @classmethod
    def _is_any_set(cls, environment: Iterable[str]) -> bool:
        """Return whether a variable of a field is set: to look at every field's type takes ten milliseconds."""
        return not {cls.variable(field).upper() for field in cls.model_fields}.isdisjoint(map(str.upper, environment))

    if not TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                variable, *within = first["loc"] or ("",)
                where = f"{'.'.join(map(str, within))}: " if within else ""
                problem = first["msg"].removeprefix("Value error, ")
                raise WrongSetting(self.variable(str(variable)), f"{where}{problem}") from None
            except SettingsError as error:
                found = _FIELD.search(str(error))
                variable = self.variable(found[1]) if found else str(error)
                raise WrongSetting(variable, f"this is not JSON ({error.__cause__})") from None

    @classmethod
    def unknown_variables(cls, environment: Iterable[str]) -> dict[str, str | None]:
        """Return the variables that carry the prefix of these settings and are none of them, each with the nearest."""
        prefix = cls.model_config.get("env_prefix", "")
        known = {cls.variable(field).removeprefix(prefix) for field in cls.model_fields}
        unknown = sorted({name.removeprefix(prefix) for name in environment if name.startswith(prefix)} - known)
        nearest = {name: nearest_names(name, known, cutoff=ALIKE_MIN) for name in unknown}
        return {f"{prefix}{name}": f"{prefix}{found[0]}" if found else None for name, found in nearest.items()}

    @classmethod
    def variable(cls, field: str) -> str:
        """Return the environment variable of a field, which may be given by its alias."""
        if field not in cls.model_fields:
            return field
        return str(
            cls.model_fields[field].validation_alias or f"{cls.model_config.get('env_prefix', '')}{field.upper()}"
        )


def _split(url: str, *, schemes: tuple[str, ...], like: str) -> SplitResult:
    """Split a URL. Raises ValueError without repeating the URL, because it may hold a password."""
    try:
        parts = urlsplit(url)
        if parts.scheme in schemes and (parts.port is None or parts.port):
            return parts
    except ValueError:
        pass
    raise ValueError(f"this is not of the form {like}")


def _nats_servers(urls: str) -> str:
    for url in urls.split(","):
        like = "nats://host:port"
        parts = _split(url if "://" in url else f"nats://{url}", schemes=("nats", "tls", "ws", "wss"), like=like)
        if not parts.hostname:
            raise ValueError(f"this is not of the form {like}")
    return urls


def _postgres(dsn: str) -> str:
    scheme, slashes, rest = dsn.partition("://")
    who, at, where = rest.partition("/")[0].rpartition("@")
    path = rest.removeprefix(f"{who}{at}{where}")
    # Several hosts: whichever of them is the primary (`target_session_attrs`).
    for host in where.split(",") or [""]:
        one = f"{scheme}{slashes}{who}{at}{host}{path}"
        _split(one, schemes=("postgresql", "postgres"), like="postgresql://user:password@host:port/database")
    return dsn


def _http(url: str) -> str:
    like = "http://host:port/path"
    if not _split(url, schemes=("http", "https"), like=like).hostname:
        raise ValueError(f"this is not of the form {like}")
    return url


def _seed(seed: str) -> str:
    try:
        nkeys.from_seed(seed.encode()).wipe()
    except Exception:
        # It fails in many ways, and none of them may repeat the seed.
        raise ValueError("this is not the seed of an nkey; one begins with SU and has 58 characters") from None
    return seed


NatsServers = Annotated[str, AfterValidator(_nats_servers)]
PostgresDsn = Annotated[str, AfterValidator(_postgres)]
HttpUrl = Annotated[str, AfterValidator(_http)]
NkeySeed = Annotated[str, AfterValidator(_seed)]
Port = Annotated[int, Field(ge=1, le=65_535)]


class BusSettings(EnvironmentSettings):
    """Shared settings, from `WAYLINE_…` variables."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_")

    nats_url: NatsServers = Field(default="nats://127.0.0.1:4222", description="Comma-separated servers of the bus.")
    nats_seed: NkeySeed | None = Field(default=None, description="The service's nkey seed; none: connect without one.")
    nats_accounts: bool = Field(
        default=False,
        description="Whether the bus has the accounts of `accounts.py` in `libs/chassis`; else all share one.",
    )
    postgres_dsn: PostgresDsn | None = Field(default=None, description="The service's own database role.")
    health_port: Port | None = Field(default=None, description="The port of probes and metrics; not set: none.")
    health_host: str = "127.0.0.1"
    drain_grace_s: float = Field(
        default=20.0, ge=0, description="How long work in hand may go on after the first SIGTERM."
    )
    connect_wait_s: float = Field(default=30.0, ge=0, description="How long a start waits for the bus.")

    tenant_slots_share: float = Field(
        default=0.75,
        gt=0,
        le=1,
        description="Of the messages that a service handles at once from one queue, how many may be one tenant's.",
    )
    waiting_per_tenant_max: int = Field(
        default=500,
        ge=0,
        description="Messages of one tenant that wait in a service, without a slot, for something that is away.",
    )
    replies_per_tenant_max_bytes: int = Field(
        default=32 * 1024**2,
        ge=1024**2,
        description="What the answers above 256 KiB that one service process gives one tenant within a minute take in "
        "the bus's store; the next is a 429.",
    )
    signals_per_tenant_max: int = Field(
        default=5_000,
        ge=10,
        description="Signals (cancel, answer, budget) of one tenant that the bus holds: the gateway answers 429 beyond "
        "it, and of those published on the bus the tenant's oldest are dropped.",
    )

    def dsn_of(self, service: str) -> str:
        """Return the address of the service's database. Raises Unavailable, naming the variable, when it is not set."""
        if self.postgres_dsn is None:
            raise Unavailable(
                "Postgres",
                detail=f"WAYLINE_POSTGRES_DSN is not set: set it to the database of {service} "
                "(`wayline up` starts one by itself)",
            )
        return self.postgres_dsn
