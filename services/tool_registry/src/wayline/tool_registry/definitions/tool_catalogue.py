"""Turn a server's tool into ours: its name, its effect, its limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from typing import Any

import orjson
import structlog

from wayline.contracts.server_config import ServerSettings, ToolSettings
from wayline.contracts.tool_details import ToolDetails
from wayline.contracts.tools import BOUND_TO_PLACE, BUILTIN, Effect, ToolDefinition, tool_named
from wayline.tool_registry.definitions.arguments import Arguments, digest_of
from wayline.tool_registry.definitions.fit_schema import fit_schema, own_arguments, with_hash
from wayline.tool_registry.definitions.listed_tool import ListedTool
from wayline.tool_registry.definitions.read_definition import read_description, read_schema
from wayline.tool_registry.definitions.tool_details import tool_details
from wayline.tool_registry.settings import SEPARATOR

log = structlog.get_logger()

NAME_MAX = 64
"""What model providers allow."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_PLAIN = ToolSettings()


@dataclass(frozen=True)
class Tool:
    """A tool as the registry knows it."""

    definition: ToolDefinition
    offered_as: str
    """Its name on its server."""
    retry_after_s: tuple[float, ...]
    reconcile_with: str
    """The tool of the same server that answers what became of a key."""
    trusted: bool
    names: Mapping[str, str] = field(default_factory=dict)
    """Its server's names of parameters, by those that its definition has for them."""
    silent_max_s: float = 0.0
    """How long its server is waited for before a call counts as cut; 0: the end of a connection says so at once."""
    proposed: Effect | None = None
    """What its server's own hints propose, where nobody has declared its effect."""
    details: ToolDetails | None = None
    """What only people and MCP clients are told of it."""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def effect(self) -> Effect:
        return self.definition.effect

    @cached_property
    def digest(self) -> str:
        return self.definition.digest

    def unapproved(self, approved: str | None) -> str | None:
        """Return why a call may not begin by the approval that it brings, named by a definition's digest; None: it may.

        The last check of an approval: the executor that made it knows the tool as it was listed some time ago.
        """
        if approved is None:
            asks = self.definition.ask
            needed = asks == "always" or (asks == "writes" and self.effect is not Effect.READ)
            return f"a call of {self.name} needs a person's approval" if needed else None
        # An executor of before, or a job that began with one, knows no place.
        known = approved if approved.startswith(BOUND_TO_PLACE) else None
        same = approved == (self.digest if known else self.definition.digest_of_description)
        return None if same else f"{self.name} has changed since this call was approved"

    def as_offered(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments by its server's names of parameters."""
        return own_arguments(arguments, self.names)

    @cached_property
    def schema_digest(self) -> str:
        return digest_of(self.definition.input_schema)


def own_name(server: str | None, tool: str) -> str:
    """Return our name for a server's tool, with the server's before it where one is given.

    Of a name in another script nothing but underscores would be left: its hash stands for it.
    """
    whole = tool if server is None else f"{server}{SEPARATOR}{tool}"
    plain = _NOT_IN_NAMES.sub("_", whole)
    return plain[:NAME_MAX] if whole.isascii() else with_hash(plain, whole, at_most=NAME_MAX)


def own_names(server: str | None, tools: Iterable[str]) -> dict[str, str]:
    """Return our names for all tools of a server, by its own; of those that become one, all but the first get a hash.

    The first in the order of its own names, however it lists them: else a name would be another tool's next time.
    """
    found: dict[str, str] = {}
    taken = set[str]()
    for tool in sorted(set(tools)):
        name = own_name(server, tool)
        found[tool] = name if name not in taken else with_hash(name, tool, at_most=NAME_MAX)
        taken.add(found[tool])
    return found


def admit(
    offered: ListedTool, server: ServerSettings, *, retry_after_s: tuple[float, ...], name: str | None = None
) -> Tool:
    """Take a server's tool in under the settings for it; `name` is ours for it, where others of the server matter."""
    own = server.tools.get(offered.name, _PLAIN)
    fitted = fit_schema(read_schema(offered.input_schema))
    definition = ToolDefinition(
        name=name or own_name(server.name, offered.name),
        description=read_description(offered.description),
        input_schema=fitted.schema,
        effect=effect_of(offered, server),
        in_order=server.in_order if own.in_order is None else own.in_order,
        timeout_s=own.timeout_s or server.timeout_s,
        server=server.name,
        ask=own.ask or server.ask,
        untrusted=bool(server.untrusted) if own.untrusted is None else own.untrusted,
        charge=own.charge,
        reached=reached_hash(server),
    )
    return Tool(
        definition=definition,
        offered_as=offered.name,
        retry_after_s=retry_after_s if own.retry_after_s is None else own.retry_after_s,
        reconcile_with=own.reconcile_tool or server.reconcile_tool or offered.name,
        trusted=server.trusted,
        names=fitted.names,
        proposed=proposed_effect(offered, server),
    )


def reached_hash(server: ServerSettings) -> str:
    """Return the hash of where calls of a server's tools go, and whose login; nothing of a secret is in it.

    An approval rests on it: saved under the same name, another program or address may be something else.
    """
    if server.name == BUILTIN:
        return ""
    url, _, query = (server.url or "").partition("?")
    login = server.oauth and [server.oauth.credentials, server.oauth.client_id, server.oauth.issuer]
    names = [sorted(part.partition("=")[0] for part in query.split("&")), sorted(server.headers), sorted(server.env)]
    place = orjson.dumps([url, server.sse, server.command, server.args, login, names])
    return sha256(place).hexdigest()[:32]


@dataclass(frozen=True)
class AdmittedTools:
    """The tools of a server that can be called, and those that cannot as they are defined."""

    tools: dict[str, Tool]
    """By our names for them."""
    left_out: dict[str, str]
    """Why each of the others is left out, by its server's name for it."""


def admit_all(
    offered: Iterable[ListedTool],
    server: ServerSettings,
    arguments: Arguments,
    *,
    retry_after_s: tuple[float, ...],
    prefix: bool = True,
    names: Mapping[str, str] | None = None,
) -> AdmittedTools:
    """Take a server's tools in; one whose schema cannot be used is left out.

    `names` are ours for all that it offers, where some of that is not taken in.
    """
    every = list(offered)
    if names is None:
        names = own_names(server.name if prefix else None, (one.name for one in every))
    found: dict[str, Tool] = {}
    left_out: dict[str, str] = {}
    for one in every:
        tool = admit(one, server, retry_after_s=retry_after_s, name=names[one.name])
        if problem := _problem(tool, found, arguments):
            log.warning("tool left out", server=server.name, tool=one.name, why=problem)
            left_out[one.name] = problem
        else:
            details = tool_details(one, arguments, trusted=server.trusted)
            found.setdefault(tool.name, replace(tool, details=details))
    return AdmittedTools(found, left_out)


def _problem(tool: Tool, found: Mapping[str, Tool], arguments: Arguments) -> str | None:
    """Return why a tool cannot be one of ours beside others; None: it can, or is listed twice."""
    if problem := arguments.check_schema(tool.definition.input_schema):
        return f"its schema {problem}"
    other = found.get(tool.name)
    if other is None or other.offered_as == tool.offered_as:
        return None
    return f"its name here would be {tool.name}, which is that of {other.offered_as!r}"


def effect_of(offered: ListedTool, server: ServerSettings) -> Effect:
    """Return what repeating a tool would do: as declared, else as a trusted server hints, else the worst."""
    if declared := server.effects.get(offered.name):
        return declared
    hints = offered.annotations
    if server.trusted and hints is not None:
        if hints.read_only_hint:
            return Effect.READ
        if hints.idempotent_hint:
            return Effect.IDEMPOTENT
    return Effect.ONCE


def proposed_effect(offered: ListedTool, server: ServerSettings) -> Effect | None:
    """Return the effect that a server's hints propose for a tool without a declared one; None: none, or two at once.

    Nothing counts because a server says it: an administrator declares it.
    """
    hints = offered.annotations
    if offered.name in server.effects or server.trusted or hints is None:
        return None
    if hints.read_only_hint:
        # A tool that reads and destroys is described wrongly.
        return None if hints.destructive_hint else Effect.READ
    return Effect.IDEMPOTENT if hints.idempotent_hint else None


def select(tools: Mapping[str, Tool], patterns: Iterable[str]) -> tuple[ToolDefinition, ...]:
    """Return the definitions whose names match any pattern, sorted by name."""
    wanted = tuple(map(tool_named, patterns))
    names = sorted(name for name in tools if any(fnmatchcase(name, pattern) for pattern in wanted))
    return tuple(tools[name].definition for name in names)
