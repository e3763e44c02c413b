"""An MCP server as a form: what is written in it as the server's configuration, and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.datastructures import FormData

from wayline.console.access.visitor import field as field_of
from wayline.console.render.json_text import finite, parsed

MASK: Final = "**********"
"""What stands for a secret that is saved; sent back, it means the saved value."""
ROWS_MORE: Final = 2
"""Empty rows below those of variables and headers that are filled in."""
ROWS_MAX: Final = 100
EFFECT: Final = "effect:"
"""Before a tool's name, in the name of its field."""
TRANSPORTS: Final = (
    ("stdio", "Program", "It runs here and speaks on its standard streams."),
    ("http", "HTTP", "A URL that speaks Streamable HTTP."),
    ("sse", "HTTP with SSE", "A URL that speaks the older transport."),
)
EFFECTS: Final = ("read", "idempotent", "reconcile", "once")
KEPT: Final = ("tools", "limits", "in_order", "reconcile_tool")
"""Fields of a saved server that the form does not have, and that stay as they are."""

Pairs = tuple[tuple[str, str], ...]


class WrongServer(ValueError):
    """The form holds what no configuration can."""


@dataclass(frozen=True, slots=True)
class ServerForm:
    """What is written in the form."""

    name: str = ""
    transport: str = "stdio"
    command: str = ""
    args: str = ""
    """One a line; or a JSON array, where one has a line end."""
    env: Pairs = ()
    hosts: str = ""
    url: str = ""
    headers: Pairs = ()
    oauth: bool = False
    credentials: str = "tenant"
    client_id: str = ""
    client_secret: str = ""
    issuer: str = ""
    scope: str = ""
    ask: str = "never"
    trusted: bool = False
    untrusted: str = ""
    """`yes`, `no`, or empty: as `trusted` says."""
    timeout_s: str = ""
    effects: Mapping[str, str] = field(default_factory=dict)

    @property
    def env_rows(self) -> Pairs:
        return _with_room(self.env)

    @property
    def header_rows(self) -> Pairs:
        return _with_room(self.headers)

    def config(self, saved: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the configuration; `saved` is the one that it takes the place of. Raises WrongServer."""
        found = {name: value for name, value in (saved or {}).items() if name in KEPT and value}
        found |= self._program() if self.transport == "stdio" else self._address()
        found |= {"ask": self.ask, "trusted": self.trusted}
        found |= {"untrusted": self.untrusted == "yes"} if self.untrusted else {}
        found |= {"timeout_s": _seconds(self.timeout_s)} if self.timeout_s else {}
        effects = {tool: effect for tool, effect in self.effects.items() if effect}
        return found | ({"effects": effects} if effects else {})

    def _program(self) -> dict[str, Any]:
        if not self.command:
            raise WrongServer("say which program it is")
        given = {"args": _words(self.args), "env": dict(self.env), "hosts": _lines(self.hosts)}
        return {"command": self.command} | {name: value for name, value in given.items() if value}

    def _address(self) -> dict[str, Any]:
        if not self.url:
            raise WrongServer("say at which URL it is")
        found: dict[str, Any] = {"url": self.url} | ({"headers": dict(self.headers)} if self.headers else {})
        found |= {"sse": True} if self.transport == "sse" else {}
        if not self.oauth:
            return found
        names = ("client_id", "client_secret", "issuer", "scope")
        about = {name: getattr(self, name) for name in names if getattr(self, name)}
        return found | {"oauth": {"credentials": self.credentials, **about}}

    @property
    def command_line(self) -> list[str]:
        """Return the program with its arguments, where there is one."""
        try:
            return [self.command, *_words(self.args)] if self.transport == "stdio" and self.command else []
        except WrongServer:
            return []


def written(form: FormData) -> ServerForm:
    """Return what a form has."""
    texts = (
        *("name", "transport", "command", "url", "credentials", "client_id", "client_secret", "issuer", "scope"),
        *("ask", "untrusted", "timeout_s", "hosts", "args"),
    )
    given: dict[str, Any] = {name: field_of(form, name) for name in texts}
    given |= {"transport": given["transport"] or "stdio", "ask": given["ask"] or "never"}
    given |= {"credentials": given["credentials"] or "tenant"}
    effects = {
        name.removeprefix(EFFECT): value
        for name, value in form.multi_items()
        if name.startswith(EFFECT) and isinstance(value, str)
    }
    return ServerForm(
        **given,
        env=_pairs(form, "env"),
        headers=_pairs(form, "header"),
        oauth="oauth" in form,
        trusted="trusted" in form,
        effects=effects,
    )


def of_config(name: str, config: Mapping[str, Any]) -> ServerForm:
    """Return the form of a server as it is saved, its secrets masked."""
    oauth = config.get("oauth") or {}
    untrusted = config.get("untrusted")
    return ServerForm(
        name=name,
        transport="stdio" if config.get("command") else "sse" if config.get("sse") else "http",
        command=config.get("command") or "",
        args=_one_a_line(config.get("args") or ()),
        env=tuple((config.get("env") or {}).items()),
        hosts="\n".join(config.get("hosts") or ()),
        url=config.get("url") or "",
        headers=tuple((config.get("headers") or {}).items()),
        oauth=config.get("oauth") is not None,
        credentials=oauth.get("credentials") or "tenant",
        **{part: oauth.get(part) or "" for part in ("client_id", "client_secret", "issuer", "scope")},
        ask=config.get("ask") or "never",
        trusted=bool(config.get("trusted")),
        untrusted="" if untrusted is None else "yes" if untrusted else "no",
        timeout_s=f"{config['timeout_s']:g}" if config.get("timeout_s") else "",
        effects=dict(config.get("effects") or {}),
    )


def _with_room(pairs: Pairs) -> Pairs:
    return (*pairs, *((("", ""),) * ROWS_MORE))


def _pairs(form: FormData, name: str) -> Pairs:
    """Return the rows of a form that have a name."""
    keys, values = form.getlist(f"{name}-name")[:ROWS_MAX], form.getlist(f"{name}-value")
    rows = [(str(key).strip(), str(value)) for key, value in zip(keys, values, strict=False)]
    return tuple((key, value) for key, value in rows if key)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _words(text: str) -> list[str]:
    """Return arguments: one a line, or a JSON array of texts. Raises WrongServer."""
    if not text.startswith("["):
        return [line for line in text.splitlines() if line]
    try:
        found = parsed(text)
    except ValueError:
        return [line for line in text.splitlines() if line]
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise WrongServer('arguments: write one a line, or a JSON array of texts: ["-y", "package"]')
    return found


def _one_a_line(words: Sequence[str]) -> str:
    plain = "\n".join(words)
    is_plain = plain.strip() == plain and not plain.startswith("[") and all(_is_line(word) for word in words)
    return plain if is_plain else json.dumps(list(words), ensure_ascii=False)


def _is_line(word: str) -> bool:
    return word.splitlines() == [word]


def _seconds(text: str) -> float:
    try:
        return finite(text)
    except ValueError:
        raise WrongServer(f"time limit: {text!r} is no number of seconds") from None
