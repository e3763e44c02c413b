"""The servers that tools are called on, however each is connected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from wayline.contracts.tools import CallTool, InputAnswer
from wayline.tool_registry.catalogue import Tool

if TYPE_CHECKING:
    from mcp_types import CallToolResult, InputRequiredResult

Leaving = Callable[[], Awaitable[Exception | None]]
"""Called last before a request is sent: None lets it go, an error is raised instead of sending it."""

NEEDS_LOGIN = "it needs authorization"
"""Begins why a server cannot be used that nobody is logged in to."""


def needs_login(server: str) -> str:
    """Return what to do about a server that nobody is logged in to."""
    return f"{NEEDS_LOGIN}: log in with `wayline mcp login {server}`"


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
    def held(self) -> dict[str, str]: ...

    async def ready(self, within_s: float) -> bool: ...


class ToolServers(Protocol):
    """All servers of the registry together."""

    @property
    def missing(self) -> Mapping[str, str]: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def tools(self, tenant: str) -> dict[str, Tool]: ...

    async def instructions(self, tenant: str) -> dict[str, str]: ...

    def away(self, tenant: str) -> dict[str, str]: ...

    async def find(self, name: str, *, tenant: str) -> tuple[Tool | None, NamedServer]: ...
