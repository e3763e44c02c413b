"""Every knob of the registry; servers come as JSON in `WAYLINE_TOOL_REGISTRY_SERVERS`."""

from __future__ import annotations

import re
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from wayline.chassis.settings import EnvironmentSettings
from wayline.contracts.tools import Ask, Effect

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
HEADER_VALUE = re.compile(r"[\x20-\x7e\t]{1,8000}")
PROTOCOL_HEADERS = frozenset({"accept", "connection", "content-length", "content-type", "host", "transfer-encoding"})
"""The default of the protocol."""
SEPARATOR = "__"
"""Between a server's name and its tool's: `github__search_issues`."""


class ToolSettings(BaseModel):
    """What differs for one tool of a server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_s: float | None = Field(default=None, gt=0)
    in_order: bool | None = None
    ask: Ask | None = Field(default=None, description="When a person must approve a call of it.")
    untrusted: bool | None = Field(default=None, description="Its results are the words of strangers.")
    retry_after_s: tuple[float, ...] | None = Field(default=None, description="Waits before each repeat of a read.")
    reconcile_tool: str | None = None


class ServerSettings(BaseModel):
    """An MCP server: where it is and how far its tools are trusted."""

    # Errors are reported without the values, which may be secrets.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str = Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$")
    url: str | None = Field(default=None, description="Streamable HTTP endpoint.")
    headers: dict[str, SecretStr] = Field(
        default_factory=dict, description="Sent with every request to `url`, such as `Authorization`; never logged."
    )
    command: str | None = Field(default=None, description="Or a program that speaks MCP on its standard streams.")
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict, repr=False, description="Added to a scratch environment.")
    effects: dict[str, Effect] = Field(default_factory=dict, description="What repeating each tool would do.")
    trusted: bool = Field(
        default=False, description="Believe the server's own hints for tools that `effects` does not name."
    )
    ask: Ask = Field(
        default="never",
        description="When a person must approve a call of its tools: `always`, `writes` (what does more than read) or "
        "`never`; agents may ask for more.",
    )
    untrusted: bool = Field(
        default=False,
        description="What its tools return are the words of strangers, such as web pages: a job that has read one "
        "needs approvals for what has an effect.",
    )
    timeout_s: float = Field(default=60, gt=0)
    in_order: bool = Field(default=False, description="Never run its tools beside another call of the same step.")
    reconcile_tool: str | None = Field(default=None, description="Asked by key what became of a `reconcile` call.")
    tools: dict[str, ToolSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _reachable_in_one_way(self) -> Self:
        if (self.url is None) == (self.command is None):
            raise ValueError(f"server {self.name!r} needs either `url` or `command`")
        if self.headers and self.url is None:
            raise ValueError(f"server {self.name!r} has `headers`, and no `url` to send them to: a program takes `env`")
        return self

    @field_validator("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        """Refuse names that HTTP does not take or the protocol needs, and values that are not one line of ASCII."""
        for name, value in headers.items():
            if not HEADER_NAME.fullmatch(name) or name.lower().startswith("mcp-") or name.lower() in PROTOCOL_HEADERS:
                raise ValueError(f"{name!r} is no header that can be set here")
            if not HEADER_VALUE.fullmatch(value.get_secret_value()):
                raise ValueError(f"the value of {name!r} has a line end or a character that is not ASCII")
        return headers


class Settings(EnvironmentSettings):
    """The registry's own settings."""

    model_config = SettingsConfigDict(env_prefix="WAYLINE_TOOL_REGISTRY_")

    servers: tuple[ServerSettings, ...] = Field(default=(), description="MCP servers beside the built-in tools.")
    lease_s: float = Field(
        default=6, gt=0, description="A call whose lease was not renewed for this long may be taken over."
    )
    answer_within_s: float = Field(default=4, gt=0, description="A caller gets `in_progress` after this long.")
    cancel_wait_s: float = Field(
        default=20,
        ge=0,
        description="How long a cancelled call that its tool has begun may go on.",
    )
    attempts_max: int = Field(default=3, ge=1, description="Executions of one key before a person must decide.")
    calls_max: int = Field(default=256, ge=1, description="Calls running at once in this process.")
    retry_after_s: tuple[NonNegativeFloat, ...] = Field(
        default=(1, 2), description="Waits before each repeat of a read."
    )
    knowledge_timeout_s: float = Field(default=20, gt=0, description="How long `search_knowledge` may take.")
    connect_timeout_s: float = Field(default=20, gt=0, description="How long connecting to a server may take.")
    available_within_s: float = Field(default=2, gt=0, description="How long a call waits for a server that is away.")
    list_within_s: float = Field(default=4, gt=0, description="How long a listing waits for servers never reached yet.")
    reconnect_wait_max_s: float = Field(default=15, gt=0)
    probe_every_s: float = Field(default=30, gt=0, description="How often a quiet server is asked for its tools.")
    keep_days: int = Field(default=45, ge=31, description="Ledger rows outlive the job logs, which are kept 30 days.")
    result_max_bytes: int = Field(default=8 * 1024 * 1024, ge=1)

    @field_validator("servers")
    @classmethod
    def _named_once(cls, servers: tuple[ServerSettings, ...]) -> tuple[ServerSettings, ...]:
        names = [server.name for server in servers]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"server names must differ; twice: {', '.join(sorted(twice))}")
        return servers
