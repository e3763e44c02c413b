"""An MCP server's configuration, from options or from answers on a terminal."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from typing import Any

import typer

from wayline.standalone.commands.arguments import fail, read_json

STRANGERS = (
    "its results count as the words of strangers: a job that has read one asks a person before it does more than read"
)
EFFECTS = ("read", "idempotent", "reconcile", "once")


def require_name(name: str) -> None:
    """End the command where no server can have a name."""
    from wayline.contracts.imported_servers import plain_name
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


def asked() -> tuple[str, dict[str, Any]]:
    """Ask for a server on the terminal."""
    from wayline.contracts.imported_servers import plain_name

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
