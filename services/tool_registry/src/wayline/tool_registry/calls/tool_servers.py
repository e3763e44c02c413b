"""The servers that tools are called on, however each is connected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol

from wayline.contracts.tools import CallTool, InputAnswer, ToolProgress
from wayline.tool_registry.definitions.tool_catalogue import Tool

if TYPE_CHECKING:
    from mcp_types import CallToolResult, InputRequiredResult

Leaving = Callable[[], Awaitable[Exception | None]]
"""Called last before a request is sent: None lets it go, an error is raised instead of sending it."""
TellProgress = Callable[[ToolProgress], None]

NEEDS_LOGIN = "it needs authorization"
"""Begins the reason why a server that needs a login cannot be used."""


def needs_login(server: str, user_id: str | None = None) -> str:
    """Return what to do about a server to which the tenant, or a user, is not logged in."""
    if user_id is None:
        return f"{NEEDS_LOGIN}: log in with `{_login_command(server, None)}`"
    return (
        f"{NEEDS_LOGIN}: user {user_id!r} is not logged in to {server!r}; log in with "
        f"`{_login_command(server, user_id)}` or POST /v1/mcp/servers/{server}/logins"
    )


def needs_user(server: str) -> str:
    """Return what to do about a call of no user, of a server with logins of single users."""
    return f"{NEEDS_LOGIN}: {server!r} is called with the login of a job's user, and this call has no `user_id`"


def needs_scope(server: str, user_id: str | None, *, fixed: bool) -> str:
    """Return what to do about a server that wants a token for more than it was given for."""
    first = "add what is missing to `oauth.scope` of the server, then log" if fixed else "log"
    return (
        f"{NEEDS_LOGIN}: the login to {server!r} was given too little (insufficient_scope); {first} in again with "
        f"`{_login_command(server, user_id)}`"
    )


def _login_command(server: str, user_id: str | None) -> str:
    return f"wayline mcp login {server}" + ("" if user_id is None else f" --user {quote(user_id)}")


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One call of a tool, ready to be sent to its server."""

    tool: str
    """The server's own name for it."""
    arguments: dict[str, Any]
    meta: dict[str, Any]
    timeout_s: float
    effect: bool
    """Whether a repeat would matter."""
    leaving: Leaving | None = None
    answer: InputAnswer | None = None
    """What a person answered to the question with which the call before ended."""
    asked: CallTool | None = None
    """The call that it is sent for."""
    tell: TellProgress | None = None
    """Hears how far the server says that it is."""

    async def stopped(self) -> Exception | None:
        """Return the error that stops the request just before it is sent; None: it may be sent."""
        return await self.leaving() if self.leaving is not None else None


class ToolServer(Protocol):
    """An MCP server."""

    @property
    def inside(self) -> bool: ...

    def hide(self, text: str) -> str: ...

    async def call(self, request: ToolRequest) -> CallToolResult | InputRequiredResult: ...


class NamedServer(ToolServer, Protocol):
    """A server of the registry: it has a name, and its tools are known once it was reached."""

    @property
    def name(self) -> str: ...

    @property
    def tools(self) -> dict[str, Tool]: ...

    @property
    def withheld(self) -> dict[str, str]: ...

    async def ready(self, within_s: float) -> bool: ...

    def tell_cancelled(self, key: str) -> None: ...


class ToolServers(Protocol):
    """All servers of the registry together."""

    @property
    def missing(self) -> Mapping[str, str]: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def tools(self, tenant: str) -> dict[str, Tool]: ...

    async def instructions(self, tenant: str) -> dict[str, str]: ...

    def away(self, tenant: str) -> dict[str, str]: ...

    async def unknown(self, tenant: str) -> dict[str, bool]: ...

    @property
    def is_read(self) -> bool: ...

    async def find(self, name: str, *, tenant: str) -> tuple[Tool | None, NamedServer]: ...
