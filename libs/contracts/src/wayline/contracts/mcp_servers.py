"""MCP servers: how one is reached and trusted, and a tenant's own servers as data."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
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

from wayline.contracts.base import Frozen, Message, Request
from wayline.contracts.budgets import ONE_LINE
from wayline.contracts.tool_use import AgentVersion, ParkedJob
from wayline.contracts.tools import Ask, Effect, ToolCharge

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
HEADER_VALUE = re.compile(r"[\x20-\x7e\t]{1,8000}")
PROTOCOL_HEADERS = frozenset({"accept", "connection", "content-length", "content-type", "host", "transfer-encoding"})
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
CONFIG_MAX_BYTES = 64 * 1024
"""Of one server with its secrets: a larger message would leave its fields, secrets too, in the object store."""
CLIENT_SECRET_MAX_CHARS = 2_000
MASK = "**********"
"""What is shown in place of a secret; sent back, it means the value that is stored."""
_WITH_SECRETS = {"secrets": True}


def _shown(value: SecretStr, info: SerializationInfo) -> str:
    """Return a secret only where it is asked for by name: every other JSON of a server has a mask."""
    return value.get_secret_value() if info.context == _WITH_SECRETS else MASK


Secret: TypeAlias = Annotated[SecretStr, PlainSerializer(_shown, return_type=str, when_used="json")]
UserId: TypeAlias = Annotated[str, Field(min_length=1, max_length=128, pattern=ONE_LINE)]
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

    @field_validator("command", "args")
    @classmethod
    def _can_be_run(cls, value: Any) -> Any:
        texts = (value,) if isinstance(value, str) else value or ()
        if any("\0" in text for text in texts):
            raise ValueError("a NUL character cannot be part of a command")
        return value

    def with_secrets(self) -> bytes:
        """Return the JSON with the values of `headers` and `env`, which every other JSON of a server masks."""
        return self.__pydantic_serializer__.to_json(self, context=_WITH_SECRETS)


class ServerSettings(ServerConfig):
    """A server with its name, as the installation lists it."""

    name: ServerName


class State(StrEnum):
    """Whether a server's tools can be called now, as one replica of the registry sees it."""

    CONNECTED = "connected"
    AWAY = "away"
    NEEDS_AUTHORIZATION = "needs_authorization"
    DISABLED = "disabled"


class ValueChange(Frozen):
    """One place where a definition differs from the approved one; values are JSON, hidden characters escaped."""

    path: str = Field(description="Where in the definition, as a JSON pointer.")
    before: str | None = Field(default=None, description="As approved; None: it was not there.")
    after: str | None = Field(default=None, description="As it is now; None: it is not there any more.")


class DefinitionChange(Frozen):
    """A definition that waits for approval: what it describes is not offered and cannot be called."""

    tool: str = Field(description="As its server calls it; empty: the instructions, which hold back every tool.")
    kind: Literal["changed", "new", "instructions"]
    sha256: str = Field(description="Of the definition: what an approval names.")
    approved_sha256: str | None = None
    since: datetime
    differences: tuple[ValueChange, ...] = ()


class ServiceView(Frozen):
    """A service that offers its tools on the bus, as it announces itself."""

    version: str = Field(default="", description="As the newest of its processes calls it.")
    instances: int = Field(default=0, description="Processes that announce themselves.")
    last_seen: datetime | None = Field(default=None, description="None: not since this registry has started.")
    tools: tuple[str, ...] = Field(default=(), description="Names of the tools that can be called.")


class ServerView(Frozen):
    """A server as it is shown: values of secrets are masked."""

    name: str
    of: Literal["tenant", "installation"] = Field(
        default="tenant", description="Who brought it: the tenant, or the installation's own settings for all tenants."
    )
    enabled: bool = True
    state: State
    why: str = Field(default="", description="Why it is away.")
    tools: int = Field(default=0, description="Tools that can be called.")
    quarantined: int = Field(default=0, description="Definitions that have changed and wait for approval.")
    changes: tuple[DefinitionChange, ...] = Field(
        default=(), description="Those definitions, of one server that was asked for by name; at most 100."
    )
    config: ServerConfig | None = Field(default=None, description="None: the installation keeps it to itself.")
    saved_at: datetime | None = Field(default=None, description="Of a service on the bus: when it was heard first.")
    service: ServiceView | None = Field(default=None, description="What is known of a service on the bus.")


class ServerList(Frozen):
    """The servers that a tenant's agents can use, by name."""

    servers: tuple[ServerView, ...]


class ServerDeleted(Frozen):
    """Whether there was such a server."""

    deleted: bool


class OfferedTool(Frozen):
    """A tool as a server offers it, before anything is known of its calls."""

    name: str
    description: str = ""
    effect: Effect = Field(description="What repeating it would do, by the configuration that was tried.")


class OfferedCounts(Frozen):
    """How much a server offers, also where a report lists less of it."""

    tools: int = 0
    resources: int = 0
    prompts: int = 0


class ServerReport(Frozen):
    """What a server offers, or why it cannot be connected to."""

    ok: bool
    why: str = Field(default="", description="Why it could not be connected to.")
    errors: str = Field(default="", description="The end of what a program wrote on its error stream.")
    server: str = Field(default="", description="What it calls itself.")
    version: str = ""
    protocol: str = Field(default="", description="The version of MCP that it speaks.")
    instructions: str = ""
    tools: tuple[OfferedTool, ...] = ()
    resources: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    counts: OfferedCounts = OfferedCounts()
    took_ms: float = 0


class ToolImpact(Frozen):
    """What a change does to one tool and its recorded calls."""

    tool: str = Field(description="Our name for it.")
    change: Literal["unchanged", "changed", "new", "gone"] = Field(
        description="Against the approved definition; `gone`: the server offers it no more."
    )
    calls: int = Field(default=0, description="Recorded calls.")
    would_fail: int = Field(default=0, description="Those that the changed definition would refuse.")
    unchecked: int = Field(default=0, description="Those whose arguments were not compared with it.")


class FailingCall(Frozen):
    """A recorded call that a changed definition would refuse."""

    job_id: str
    step: int
    call: str
    tool: str
    why: str


class ServerImpact(Frozen):
    """Who uses a server's tools, and which recorded calls would fail after a change."""

    name: str
    since: datetime = Field(description="Calls of jobs are counted from here on.")
    tools: tuple[ToolImpact, ...]
    agents_total: int = Field(description="Agents whose current version may use a tool of it.")
    agents: tuple[AgentVersion, ...] = Field(description="The first of them by name, at most 100.")
    parked_total: int = Field(
        description="Parked jobs that wait because of a call of its tools, or whose agent may use one."
    )
    parked: tuple[ParkedJob, ...] = Field(description="The newest of them, at most 100.")
    calls: int = Field(description="Recorded calls of all its tools.")
    jobs: int = Field(description="Jobs that made them.")
    would_fail: int
    unchecked: int
    failing: tuple[FailingCall, ...] = Field(description="The newest calls that would fail, at most 100.")


class _CarriesSecrets(Request):
    """A request with secrets in it; it is never stored."""

    terse = True

    def to_wire(self) -> bytes:
        """Encode the JSON body with the secrets: only this message hands them on."""
        return self.__pydantic_serializer__.to_json(self, context=_WITH_SECRETS, exclude_unset=True)


class _WithConfig(_CarriesSecrets):
    """A request that carries a server with its secrets."""

    config: ServerConfig


class PutServer(_WithConfig, subject="mcp.put.{tenant}", replies=ServerView):
    """Save a server of the tenant's own; `**********` in place of a secret keeps the stored one."""

    name: ServerName


class TryServer(_WithConfig, subject="mcp.try.{tenant}", replies=ServerReport):
    """Connect to a server once and return what it offers; nothing is stored."""

    name: ServerName | None = Field(
        default=None, description="The saved server whose secrets the masks of `config` stand for."
    )


class GetImpact(_CarriesSecrets, subject="mcp.impact.{tenant}", replies=ServerImpact):
    """Ask what a change of a server touches: its definitions that wait, or what it would offer if saved so."""

    name: ServerName
    config: ServerConfig | None = Field(
        default=None, description="An unsaved configuration to connect to; None: the server as it is saved."
    )


class TrySavedServer(Request, subject="mcp.trysaved.{tenant}", replies=ServerReport):
    """Connect to a saved server once more and return what it offers."""

    name: str


class ListServers(Request, subject="mcp.list.{tenant}", replies=ServerList):
    """Ask for the installation's servers and the tenant's own."""


class GetServer(Request, subject="mcp.get.{tenant}", replies=ServerView):
    """Ask for one server."""

    name: str


class DeleteServer(Request, subject="mcp.delete.{tenant}", replies=ServerDeleted):
    """Remove a server of the tenant's own with its secrets; calls under way end first."""

    name: str


class EnableServer(Request, subject="mcp.enable.{tenant}", replies=ServerView):
    """Enable or disable a server of the tenant's own; a disabled one keeps its secrets and has no tools."""

    name: str
    enabled: bool


class ApproveDefinitions(Request, subject="mcp.approve.{tenant}", replies=ServerView):
    """Approve definitions that wait, by their hashes, all or none; refused where the server offers others by now."""

    name: str
    sha256: tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")], ...] = Field(min_length=1, max_length=2_001)


class AuthorizationUrl(Frozen):
    """Where a person logs in to a server."""

    url: str = Field(description="To be opened in a browser within ten minutes.")


class AuthorizeServer(Request, subject="mcp.authorize.{tenant}", replies=AuthorizationUrl):
    """Begin a login to a server that needs OAuth."""

    name: ServerName
    redirect_uri: str = Field(max_length=2_000, description="Where the browser comes back to.")
    user_id: UserId | None = Field(default=None, description="Who logs in for their own jobs; None: the tenant.")
    client_metadata_url: str | None = Field(
        default=None, max_length=2_000, description="Where an authorization server can read who its client is."
    )


class ServerAuthorized(Frozen):
    """A server that was logged in to."""

    name: str
    user_id: str | None = None


class FinishAuthorization(Request, subject="mcp.finish.{tenant}", replies=ServerAuthorized):
    """Finish a login with what the browser brought back; a state counts once."""

    state: str = Field(max_length=500)
    code: str | None = Field(default=None, max_length=8_000)
    iss: str | None = Field(default=None, max_length=2_000)


class AuthorizationForgotten(Frozen):
    """Whether there were tokens, and whether they are revoked."""

    forgotten: bool
    revoked: bool = False


class ForgetAuthorization(Request, subject="mcp.forget.{tenant}", replies=AuthorizationForgotten):
    """Forget the tokens of a server: the tenant's, or one user's."""

    name: str
    user_id: UserId | None = None


class UserForgotten(Frozen):
    """The servers that a user was logged in to."""

    servers: tuple[str, ...]
    revoked: tuple[str, ...] = Field(default=(), description="Those whose authorization server revoked the tokens.")


class ForgetUser(Request, subject="mcp.forgetuser.{tenant}", replies=UserForgotten):
    """Forget a user's tokens of every server, and the logins that the user has begun."""

    user_id: UserId


class ServerLogin(Frozen):
    """A user who is logged in to a server; tokens are never shown."""

    user_id: str
    logged_in_at: datetime
    refused: bool = Field(default=False, description="The tokens are renewed no more: the user has to log in again.")


class LoginPage(Frozen):
    """Users who are logged in to a server, by their ids."""

    logins: tuple[ServerLogin, ...]
    next_cursor: str | None = Field(default=None, description="For the next page; None: there is no more.")


class ListLogins(Request, subject="mcp.logins.{tenant}", replies=LoginPage):
    """Ask which users are logged in to a server."""

    name: str
    user_id: UserId | None = Field(default=None, description="Only this one.")
    limit: int = Field(default=100, ge=1, le=1_000)
    cursor: UserId | None = None


class ServersChanged(Message, subject="mcp.changed.{tenant}"):
    """Tell every replica of the registry to read a tenant's servers again."""
