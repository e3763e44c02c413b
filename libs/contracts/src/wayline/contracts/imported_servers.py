"""The servers of a desktop client's configuration, as they would be saved here. Pure.

Strangers write such files: what is read of them is bounded, and no reason holds a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from wayline.contracts.server_config import CONFIG_MAX_BYTES

SERVERS_MAX: Final = 100
"""Of one file."""
NAME_MAX_CHARS: Final = 200
"""Of a server's name in a file, and of a field's name that is told."""
DROPPED_MAX: Final = 20
"""Fields without a meaning here that are named of one server."""
NOT_KEPT: Final = {
    "cwd": "a program starts in a directory of its own; name directories in `args` in full",
    "envFile": "put its variables into `env`",
}
"""Fields of a desktop client's server without which its program would do something else, and what to do instead."""
READ: Final = frozenset(
    "url serverUrl httpUrl headers command args env type transport disabled enabled name description".split()
)
"""Fields of a desktop client's server that are kept, or say nothing about how it runs."""
STORED: Final = "secret:"
_PLACEHOLDER: Final = re.compile(r"\$\{(?P<kind>env:)?(?P<name>(?:(?!\$\{)[^}])*)\}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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


def imported(server: Mapping[str, Any], environment: Mapping[str, str] | None) -> dict[str, Any]:
    """Return a desktop client's server as it is saved here, `${VARIABLE}` replaced. Raises CannotImport.

    Without an environment, as where the file is another machine's, only `${VARIABLE:-default}` has a value.
    """
    for field, instead in NOT_KEPT.items():
        if server.get(field):
            raise CannotImport(f"its `{field}` cannot be kept: {instead}")
    if len(json.dumps(server)) > CONFIG_MAX_BYTES:
        raise CannotImport(f"the whole server takes more than {CONFIG_MAX_BYTES} bytes")
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


def planned(given: str, server: Any, environment: Mapping[str, str] | None) -> PlannedServer:
    """Return what would be saved of a desktop client's server, or why nothing can be."""
    name, shown = plain_name(given[:NAME_MAX_CHARS]), given[:NAME_MAX_CHARS]
    if not isinstance(server, Mapping):
        return PlannedServer(shown, name, {}, disabled=False, why="it is no object with `url` or `command`")
    disabled = bool(server.get("disabled")) or server.get("enabled") is False
    without = sorted(field for field, value in server.items() if field not in READ and value)
    dropped = tuple(field[:NAME_MAX_CHARS] for field in without[:DROPPED_MAX])
    try:
        if len(given) > NAME_MAX_CHARS:
            raise CannotImport(f"its name has more than {NAME_MAX_CHARS} characters")
        return PlannedServer(shown, name, imported(server, environment), disabled, dropped=dropped)
    except CannotImport as error:
        return PlannedServer(shown, name, {}, disabled, str(error))


def _replaced(value: Any, environment: Mapping[str, str] | None) -> Any:
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda found: _value_of(found, environment), value)
    if isinstance(value, list):
        return [_replaced(one, environment) for one in value]
    if isinstance(value, dict):
        return {name: _replaced(one, environment) for name, one in value.items()}
    return value


def _value_of(found: re.Match[str], environment: Mapping[str, str] | None) -> str:
    if found["kind"] is None and found["name"].startswith(STORED):
        # A secret that is stored here: only where the server is reached its value takes the place.
        return found[0]
    name, _, default = found["name"].partition(":-")
    shown = found[0][:NAME_MAX_CHARS]
    if not _VARIABLE.fullmatch(name):
        raise CannotImport(f"{shown} is filled in by the client that wrote the file: put the value in its place")
    if value := (environment or {}).get(name) or default:
        return value
    if environment is None:
        raise CannotImport(f"it needs {shown}: put the value in its place, or `${{secret:NAME}}` of a stored secret")
    raise CannotImport(f"it needs {shown}: set the variable {name}, and import again")
