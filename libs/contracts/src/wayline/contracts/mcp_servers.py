"""MCP servers as data: a tenant's own, saved, tried and changed."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from wayline.contracts.base import Frozen, Message, Request
from wayline.contracts.server_config import WITH_SECRETS, ServerConfig, ServerName
from wayline.contracts.tool_use import AgentVersion, ParkedJob
from wayline.contracts.tools import Effect


class State(StrEnum):
    """Whether a server's tools can be called now, as one replica of the registry sees it."""

    CONNECTED = "connected"
    CONNECTING = "connecting"
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


class UndeclaredTool(Frozen):
    """A tool whose effect nobody has declared: it counts as `once`, the effect that is never repeated."""

    name: str = Field(description="As its server calls it.")
    proposed: Effect | None = Field(
        default=None, description="What its server's own hints propose; None: they propose nothing, or two things."
    )


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
    left_out: int = Field(default=0, description="Tools that cannot be used as the server defines them.")
    problems: tuple[str, ...] = Field(
        default=(), description="Why they are left out, of one server that was asked for by name; at most 100."
    )
    quarantined: int = Field(default=0, description="Definitions that have changed and wait for approval.")
    changes: tuple[DefinitionChange, ...] = Field(
        default=(), description="Those definitions, of one server that was asked for by name; at most 100."
    )
    config: ServerConfig | None = Field(default=None, description="None: the installation keeps it to itself.")
    saved_at: datetime | None = Field(default=None, description="Of a service on the bus: when it was heard first.")
    warnings: tuple[str, ...] = Field(
        default=(), description="What to correct of a server that was just saved, such as a secret that readers see."
    )
    service: ServiceView | None = Field(default=None, description="What is known of a service on the bus.")
    undeclared: tuple[UndeclaredTool, ...] = Field(
        default=(),
        description="Tools whose calls park their job where nobody knows whether they acted, because no effect is "
        "declared, of one server that was asked for by name or saved; at most 100.",
    )
    advice: str = Field(default="", description="How to declare their effects; empty: there are none.")


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
    proposed: Effect | None = Field(
        default=None,
        description="What its server's own hints propose, where no effect is declared; `accept_effects` declares it.",
    )
    tokens: int = Field(
        default=0, ge=0, description="Estimated tokens that its definition takes in a prompt; 0: not known."
    )


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
    problems: tuple[str, ...] = Field(
        default=(),
        description="Which of the tools would be left out, and why: they are not among `tools`; at most 100.",
    )
    advice: str = Field(
        default="",
        description="How to declare effects that nobody has declared; empty: there are none, or no name.",
    )
    took_ms: float = 0
    sha256: str = Field(
        default="", description="Of all definitions and the instructions: `shown` of `PutServer` approves these alone."
    )


class ToolImpact(Frozen):
    """What a change does to one tool and its recorded calls."""

    tool: str = Field(description="Our name for it.")
    change: Literal["unchanged", "changed", "new", "gone"] = Field(
        description="Against the approved definition; `gone`: the server offers it no more."
    )
    calls: int = Field(default=0, description="Recorded calls.")
    would_fail: int = Field(default=0, description="Those that the changed definition would refuse.")
    unchecked: int = Field(default=0, description="Those whose arguments were not compared with it.")
    unusable: str = Field(default="", description="Why it cannot be called as it is defined; empty: it can.")


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


class CarriesSecrets(Request):
    """A request with secrets in it; it is never stored."""

    terse = True

    def to_wire(self) -> bytes:
        """Encode the JSON body with the secrets: only this message hands them on."""
        return self.__pydantic_serializer__.to_json(self, context=WITH_SECRETS, exclude_unset=True)


class _WithConfig(CarriesSecrets):
    """A request that carries a server with its secrets."""

    config: ServerConfig


class PutServer(_WithConfig, subject="mcp.put.{tenant}", replies=ServerView):
    """Save a server of the tenant's own; `**********` in place of a secret keeps the stored one."""

    name: ServerName
    enabled: bool | None = Field(default=None, description="None: as it is; a new one is enabled.")
    shown: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="`sha256` of the report that was shown: where the first connection offers something else, all of "
        "it waits for approval. None: what it offers first is approved.",
    )


class TryServer(_WithConfig, subject="mcp.try.{tenant}", replies=ServerReport):
    """Connect to a server once and return what it offers; nothing is stored."""

    name: ServerName | None = Field(
        default=None, description="The saved server whose secrets the masks of `config` stand for."
    )


class GetImpact(CarriesSecrets, subject="mcp.impact.{tenant}", replies=ServerImpact):
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
    tools: tuple[str, ...] = Field(
        default=(), max_length=100, description="Only changes of these tools, as they are shown; empty: the first ones."
    )
    settled: bool = Field(
        default=False, description="Wait a moment for a server that was just saved, until its tools are known."
    )


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


class ServersChanged(Message, subject="mcp.changed.{tenant}"):
    """Tell every replica of the registry to read a tenant's servers again."""
