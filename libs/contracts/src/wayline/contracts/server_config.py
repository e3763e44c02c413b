"""How an MCP server is reached, and how far it is trusted."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    SerializationInfo,
    field_validator,
    model_validator,
)

from wayline.contracts.tool_charges import ToolCharge
from wayline.contracts.tools import Ask, Effect

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
HEADER_VALUE = re.compile(r"[\x20-\x7e\t]{1,8000}")
PROTOCOL_HEADERS = frozenset({"accept", "connection", "content-length", "content-type", "host", "transfer-encoding"})
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
CONFIG_MAX_BYTES = 64 * 1024
"""Of one server with its secrets: a larger message would leave its fields, secrets too, in the object store."""
CLIENT_SECRET_MAX_CHARS = 2_000
HOSTS_MAX = 50
HOST = re.compile(r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,250}[A-Za-z0-9_])?(?::[0-9]{1,5})?")
MASK = "**********"
"""What is shown in place of a secret; sent back, it means the value that is stored."""
WITH_SECRETS = {"secrets": True}
"""The context that writes the values of secrets."""


SECRET_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
REFERENCE = re.compile(rf"\$\{{secret:({SECRET_NAME})\}}")
"""The place of a secret of the tenant's own, in `url`, `headers`, `args` and `env`."""
ONLY_REFERENCE = re.compile(rf"(?:[A-Za-z-]{{1,20}} )?{REFERENCE.pattern}")
"""A value that holds no secret itself: a reference, perhaps after a word such as `Bearer`."""


def _shown(value: SecretStr, info: SerializationInfo) -> str:
    """Return a secret only where it is asked for by name: every other JSON of a server has a mask, or a reference."""
    text = value.get_secret_value()
    return text if info.context == WITH_SECRETS or ONLY_REFERENCE.fullmatch(text) else MASK


Secret: TypeAlias = Annotated[SecretStr, PlainSerializer(_shown, return_type=str, when_used="json")]
SERVER_NAME = r"^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$"
ServerName: TypeAlias = Annotated[str, Field(pattern=SERVER_NAME)]


class ToolSettings(BaseModel):
    """What differs for one tool of a server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_s: float | None = Field(default=None, gt=0)
    in_order: bool | None = None
    ask: Ask | None = Field(default=None, description="When a person must approve a call of it.")
    untrusted: bool | None = Field(default=None, description="Its results are the words of strangers.")
    charge: ToolCharge | None = Field(
        default=None, description="The most that one call of it charges: held for its job before the call is made."
    )
    retry_after_s: tuple[float, ...] | None = Field(default=None, description="Waits before each repeat of a read.")
    reconcile_tool: str | None = None


class ServerOAuth(BaseModel):
    """How people log in to a server over HTTP."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    credentials: Literal["tenant", "user"] = Field(
        default="tenant",
        description="Whose login calls are made with: `tenant`, one for all, or `user`, that of the job's user alone; "
        "then the tenant's login only lists the tools.",
    )
    client_id: str | None = Field(
        default=None, max_length=2_000, description="Of a client that exists already; None: one is registered."
    )
    client_secret: Secret | None = Field(default=None, description="Of that client, where it has one; never logged.")
    issuer: str | None = Field(
        default=None,
        max_length=2_000,
        description="The only authorization server that is used; a `client_secret` needs it, so that no server can "
        "have it sent elsewhere.",
    )
    scope: str | None = Field(
        default=None, max_length=2_000, description="All that is ever asked for; None: what the server asks for."
    )

    @model_validator(mode="after")
    def _keeps_its_secret(self) -> Self:
        if self.client_secret is None:
            return self
        if self.client_id is None or self.issuer is None:
            raise ValueError("`client_secret` needs `client_id`, and `issuer`: the authorization server that gave it")
        if not 0 < len(self.client_secret.get_secret_value()) <= CLIENT_SECRET_MAX_CHARS:
            raise ValueError(f"`client_secret` is empty, or longer than {CLIENT_SECRET_MAX_CHARS} characters")
        return self


class ProgramLimits(BaseModel):
    """What a server's program may use, within what the installation allows tenants' programs; None: as much as that."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    memory_mb: int | None = Field(default=None, ge=64, description="Memory of its data, in MiB.")
    files_max: int | None = Field(default=None, ge=16, description="Files that it may hold open.")
    file_mb: int | None = Field(default=None, ge=1, description="Size of a file that it may write, in MiB.")


class ServerConfig(BaseModel):
    """An MCP server: how it is reached and how far its tools are trusted."""

    # Errors are reported without the values, which may be secrets.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str | None = Field(default=None, description="Streamable HTTP endpoint.")
    sse: bool = Field(default=False, description="`url` speaks the older transport of HTTP with server-sent events.")
    headers: dict[str, Secret] = Field(
        default_factory=dict, description="Sent with every request to `url`, such as `Authorization`; never logged."
    )
    oauth: ServerOAuth | None = Field(
        default=None,
        description="The tenant's administrator logs in to `url`, and with `credentials` each user; `{}` may do.",
    )
    command: str | None = Field(default=None, description="Or a program that speaks MCP on its standard streams.")
    args: tuple[str, ...] = ()
    env: dict[str, Secret] = Field(default_factory=dict, description="Added to a scratch environment; never logged.")
    limits: ProgramLimits = Field(
        default=ProgramLimits(), description="Of the program; where the tool-registry's system has such limits."
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        max_length=HOSTS_MAX,
        description="Public hosts that an isolated program may reach, such as `api.example.com` or `*.example.com`; "
        "it has no other network.",
    )
    effects: dict[str, Effect] = Field(default_factory=dict, description="What repeating each tool would do.")
    trusted: bool = Field(
        default=False, description="Believe the server's own hints for tools that `effects` does not name."
    )
    ask: Ask = Field(
        default="never",
        description="When a person must approve a call of its tools: `always`, `writes` (what does more than read) or "
        "`never`; agents may ask for more.",
    )
    untrusted: bool | None = Field(
        default=None,
        description="What its tools return are the words of strangers, such as web pages: a job that has read one "
        "needs approvals for what has an effect. None: those of a server that a tenant saves are, unless it is "
        "`trusted`; those of the installation's own servers are not.",
    )
    timeout_s: float = Field(default=60, gt=0)
    in_order: bool = Field(default=False, description="Never run its tools beside another call of the same step.")
    reconcile_tool: str | None = Field(default=None, description="Asked by key what became of a `reconcile` call.")
    tools: dict[str, ToolSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _reachable_in_one_way(self) -> Self:
        if (self.url is None) == (self.command is None):
            raise ValueError("a server needs either `url` or `command`")
        if self.headers and self.url is None:
            raise ValueError("it has `headers`, and no `url` to send them to: a program takes `env`")
        if self.oauth is not None and self.url is None:
            raise ValueError("`oauth` is a way of logging in to a `url`")
        if self.oauth is not None and any(name.lower() == "authorization" for name in self.headers):
            raise ValueError("a server has either `oauth` or a header `Authorization`")
        if self.limits != ProgramLimits() and self.command is None:
            raise ValueError("`limits` are those of a program, and there is no `command`")
        if self.hosts and self.command is None:
            raise ValueError("`hosts` are those that a program may reach, and there is no `command`")
        if self.sse and self.url is None:
            raise ValueError("`sse` is a way of speaking to a `url`")
        if len(self.with_secrets()) > CONFIG_MAX_BYTES:
            raise ValueError(f"the whole server takes more than {CONFIG_MAX_BYTES} bytes")
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

    @field_validator("env")
    @classmethod
    def _can_be_set(cls, env: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in env.items():
            if not VARIABLE_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a variable")
            if "\0" in value.get_secret_value():
                raise ValueError(f"the value of {name!r} holds a NUL character")
        return env

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [host for host in hosts if not HOST.fullmatch(host)]:
            raise ValueError(f"{wrong[0]!r} is no host: give a name, with `*.` before it for all that is below it")
        return hosts

    @field_validator("command", "args")
    @classmethod
    def _can_be_run(cls, value: Any) -> Any:
        texts = (value,) if isinstance(value, str) else value or ()
        if any("\0" in text for text in texts):
            raise ValueError("a NUL character cannot be part of a command")
        return value

    def with_secrets(self) -> bytes:
        """Return the JSON with the values of `headers` and `env`, which every other JSON of a server masks."""
        return self.__pydantic_serializer__.to_json(self, context=WITH_SECRETS)


class ServerSettings(ServerConfig):
    """A server with its name, as the installation lists it."""

    name: ServerName
