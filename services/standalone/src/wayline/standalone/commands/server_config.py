"""An MCP server's configuration, from options, from answers on a terminal, or from a desktop client's file."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

import typer

from wayline.standalone.commands.arguments import fail, read_json

STRANGERS = (
    "its results count as the words of strangers: a job that has read one asks a person before it does more than read"
)
NOT_KEPT = {
    "cwd": "a program starts in a directory of its own; name directories in `args` in full",
    "envFile": "put its variables into `env`",
}
"""Fields of a desktop client's server without which its program would do something else, and what to do instead."""
READ = frozenset(
    "url serverUrl httpUrl headers command args env type transport disabled enabled name description".split()
)
"""Fields of a desktop client's server that are kept, or say nothing about how it runs."""
STORED = "secret:"
EFFECTS = ("read", "idempotent", "reconcile", "once")
_PLACEHOLDER = re.compile(r"\$\{(?P<kind>env:)?(?P<name>[^}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PlannedServer(NamedTuple):
    """A server of a desktop client's file, as it would be saved here."""

    given: str
    """Its name in the file."""
    name: str
    config: dict[str, Any]
    disabled: bool
    why: str = ""
    """Why it cannot be saved; empty: it can be tried."""
    dropped: tuple[str, ...] = ()
    """Fields of the file that have no meaning here."""

    def about(self) -> dict[str, Any]:
        """Return what the output says of it beside what became of it."""
        return {"given": self.given, "name": self.name, "disabled": self.disabled, "dropped": list(self.dropped)}


class CannotImport(Exception):
    """A desktop client's server that cannot be saved here; the text says why."""


def plain_name(given: str) -> str:
    """Return the name that a server has here: `My Files` is `my-files`."""
    return re.sub(r"[^a-z0-9]+", "-", given.lower()).strip("-")[:32].strip("-") or "server"


def imported(server: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return a desktop client's server as it is saved here, `${VARIABLE}` replaced. Raises CannotImport."""
    for field, instead in NOT_KEPT.items():
        if server.get(field):
            raise CannotImport(f"its `{field}` cannot be kept: {instead}")
    kind = str(server.get("type") or server.get("transport") or "").lower()
    config = {
        "url": server.get("url") or server.get("serverUrl") or server.get("httpUrl"),
        "sse": kind == "sse" or None,
        "headers": server.get("headers"),
        "command": server.get("command"),
        "args": server.get("args"),
        "env": server.get("env"),
    }
    return {field: _replaced(value, environment) for field, value in config.items() if value}


def planned(given: str, server: Mapping[str, Any], environment: Mapping[str, str]) -> PlannedServer:
    """Return what would be saved of a desktop client's server, or why nothing can be."""
    name, disabled = plain_name(given), bool(server.get("disabled")) or server.get("enabled") is False
    dropped = tuple(sorted(field for field, value in server.items() if field not in READ and value))
    try:
        return PlannedServer(given, name, imported(server, environment), disabled, dropped=dropped)
    except CannotImport as error:
        return PlannedServer(given, name, {}, disabled, str(error))


def require_name(name: str) -> None:
    """End the command where no server can have a name."""
    from wayline.contracts.server_config import SERVER_NAME

    if not re.fullmatch(SERVER_NAME, name):
        fail(f"{name!r} cannot be a server's name: take small letters, digits and -, such as {plain_name(name)}")


def require_one_way(config: Mapping[str, Any]) -> None:
    """End the command where a server has no URL and no program, or both."""
    if "url" in config and "command" in config:
        fail("give either --url or a command after --, not both")
    if "url" not in config and "command" not in config:
        fail("say where the server is: --url URL, or its command after --")


def command_line(config: Mapping[str, Any]) -> str:
    """Return the program that a server's configuration starts, with all its arguments on one line; empty: none."""
    from wayline.tool_registry.definitions.visible_text import visible

    if not (command := config.get("command")):
        return ""
    args = config.get("args") or ()
    words = [command, *(args if isinstance(args, list | tuple) else (args,))]
    line = visible(shlex.join(map(str, words))).replace("\n", "\\n").replace("\t", "\\t")
    names = ", ".join(sorted(map(str, config.get("env") or ())))
    return f"{line}  (with {visible(names)})" if names else line


def _replaced(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda found: _value_of(found, environment), value)
    if isinstance(value, list):
        return [_replaced(one, environment) for one in value]
    if isinstance(value, dict):
        return {name: _replaced(one, environment) for name, one in value.items()}
    return value


def _value_of(found: re.Match[str], environment: Mapping[str, str]) -> str:
    if found["kind"] is None and found["name"].startswith(STORED):
        # A secret that is stored here: only where the server is reached its value takes the place.
        return found[0]
    name, _, default = found["name"].partition(":-")
    if not _VARIABLE.fullmatch(name):
        raise CannotImport(f"{found[0]} is filled in by the client that wrote the file: put the value in its place")
    value = environment.get(name) or default
    if not value:
        raise CannotImport(f"it needs {found[0]}: set the variable {name}, and import again")
    return value


def asked() -> tuple[str, dict[str, Any]]:
    """Ask for a server on the terminal."""
    name = plain_name(typer.prompt("Name"))
    where = typer.prompt("URL, or the command that starts it")
    config: dict[str, Any] = {}
    if where.startswith(("http://", "https://")):
        config["url"] = where
        secret = typer.prompt("Authorization header (empty: none)", default="", show_default=False, hide_input=True)
        if secret:
            config["headers"] = {"Authorization": secret}
    else:
        config["command"], *config["args"] = _words(where)
        env: dict[str, str] = {}
        while variable := typer.prompt("Variable that it needs (empty: no more)", default="", show_default=False):
            env[variable] = typer.prompt(f"Value of {variable}", hide_input=True)
        config["env"] = env
    config["trusted"] = typer.confirm("Believe its own hints of which tools only read?", default=False)
    strangers = "Are its results words of strangers, such as web pages? Jobs that read them then need approvals."
    config["untrusted"] = typer.confirm(strangers, default=not config["trusted"])
    return name, config


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        fail(f"the command cannot be read: {error}")
    if not words:
        fail("give a URL or a command")
    return words


def without_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what was not given; an empty `oauth` is a login without settings of its own."""
    return {
        field: value
        for field, value in given.items()
        if value or (value == {} and field == "oauth") or (value is False and field == "untrusted")
    }


def oauth(file: str | None, *, users: bool) -> dict[str, Any]:
    """Read how people log in; the client comes from a file, because a command line is no place for a secret."""
    client = {} if file is None else read_json(file)
    if not isinstance(client, dict):
        fail(f'{file} is not of the form {{"client_id": "…", "client_secret": "…", "issuer": "https://…"}}')
    return {**client, "credentials": "user"} if users else client


def header(text: str) -> tuple[str, str]:
    """Read `NAME:VALUE`."""
    name, colon, value = text.partition(":")
    if not colon:
        fail(f"--header {name} needs a value: --header '{name}: VALUE'")
    return name.strip(), value.strip()


def variable(text: str) -> tuple[str, str]:
    """Read `NAME=VALUE`, or the value of our own variable `NAME`."""
    name, given, value = text.partition("=")
    if given:
        return name, value
    if name not in os.environ:
        fail(f"--env {name} has no value, and there is no variable {name} here")
    return name, os.environ[name]


def effect(text: str) -> tuple[str, str]:
    """Read `TOOL=EFFECT`."""
    tool, _, named = text.partition("=")
    if named not in EFFECTS:
        fail(f"--effect {text} is not of the form TOOL=EFFECT, with one of {', '.join(EFFECTS)}")
    return tool, named
