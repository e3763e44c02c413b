"""Which programs a tenant's server may be, and which variables each may be given."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from wayline.contracts.errors import Reject
from wayline.contracts.server_config import ServerConfig
from wayline.guarded_http import AddressPolicy

ProgramsMode: TypeAlias = Literal["isolated", "unconfined", "off"]
VARIABLE = "WAYLINE_TOOL_REGISTRY_COMMANDS"
COMMAND_SHOWN_MAX = 300
"""Characters of a command line in an error."""


class AllowedCommand(BaseModel):
    """A command that tenants' servers may be, and what it may be given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str = Field(min_length=1, description="A name or path, or how the whole command line begins.")
    env: tuple[str, ...] = Field(default=(), description="Names of the variables; no other one can be set.")
    reads: tuple[str, ...] = Field(
        default=(), description="Files and directories that it sees where it is isolated, beside those of `command`."
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts that it may reach where it is isolated, beside the public ones that its server names; "
        "those of the inside too.",
    )

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        AddressPolicy.of(one.removeprefix("*.") for one in hosts)
        return hosts

    def __str__(self) -> str:
        return f"{self.command} (variables: {', '.join(self.env) or 'none'})"


AllowedCommands: TypeAlias = Sequence[str | AllowedCommand]


def require_program(config: ServerConfig, allowed: AllowedCommands) -> None:
    """Refuse a program, or a variable of it, that no entry allows. Raises Reject, saying who can allow it.

    No list of variables that decide which code runs, or to whom it speaks, is ever complete: so the operator names
    those that may be set.
    """
    argv = (config.command or "", *config.args)
    entries = [entry for entry in allowed if _allows(entry, argv)]
    if not entries:
        raise _command_refused(argv, allowed)
    refused = [(entry, [name for name in config.env if not _allows_variable(entry, name)]) for entry in entries]
    if all(names for _, names in refused):
        raise _variables_refused(*min(refused, key=lambda one: len(one[1])))


def not_allowed(why: str) -> Reject:
    """Return the error of what a tenant may not save here."""
    return Reject(why, code="server_not_allowed", status=422)


def granted(argv: tuple[str, ...], allowed: AllowedCommands) -> tuple[list[str], list[str]]:
    """Return the hosts and the files that the entries which allow a program give it."""
    hosts: list[str] = []
    reads: list[str] = []
    for entry in allowed:
        if not _allows(entry, argv):
            continue
        reads += _words(entry)
        if isinstance(entry, AllowedCommand):
            hosts += entry.hosts
            reads += entry.reads
    return hosts, reads


def _words(entry: str | AllowedCommand) -> tuple[str, ...]:
    line = entry if isinstance(entry, str) else entry.command
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return ()


def _allows_variable(entry: str | AllowedCommand, name: str) -> bool:
    return isinstance(entry, AllowedCommand) and name in entry.env


def _allows(entry: str | AllowedCommand, argv: tuple[str, ...]) -> bool:
    """Return whether an entry of the list allows a program: by its command, or by how its whole command line begins."""
    line = entry if isinstance(entry, str) else entry.command
    if line == argv[0]:
        return True
    words = _words(entry)
    return len(words) > 1 and argv[: len(words)] == words


def _command_refused(argv: tuple[str, ...], allowed: AllowedCommands) -> Reject:
    if not allowed:
        return not_allowed(
            "programs of tenants run on this installation only where its operator allows them, by "
            f"`{_setting_that_allows(argv)}` before the tool-registry (or `wayline up`) is started; or give a `url`"
        )
    return not_allowed(
        f"the command {shlex.join(argv)[:COMMAND_SHOWN_MAX]} is not allowed here; "
        f"{VARIABLE} allows {', '.join(map(str, allowed))}"
    )


def _setting_that_allows(argv: tuple[str, ...]) -> str:
    """Return the line of a shell that allows a program as it is called; one that is too long to show, by its name."""
    line = shlex.join(argv)
    entry = line if len(line) <= COMMAND_SHOWN_MAX else argv[0]
    return f"export {VARIABLE}={shlex.quote(json.dumps([entry], ensure_ascii=False))}"


def _variables_refused(entry: str | AllowedCommand, names: Sequence[str]) -> Reject:
    if isinstance(entry, AllowedCommand):
        return not_allowed(
            f"{', '.join(names)} in `env`: {VARIABLE} allows {entry}; leave it out, or have the operator add it there"
        )
    example = json.dumps({"command": entry, "env": list(names)})
    return not_allowed(
        f"{', '.join(names)} in `env`: the operator has allowed the command without variables, because one may decide "
        f"which code runs; leave it out, or have the operator write {example} in {VARIABLE}"
    )
