"""The servers that tools are called on, whatever each is connected by."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from wayline.tool_registry.catalogue import Tool

if TYPE_CHECKING:
    from mcp_types import CallToolResult

Leaving = Callable[[], Awaitable[Exception | None]]
"""Asked last thing before a request leaves: None lets it go, an error is raised in its place."""


class ToolServer(Protocol):
    """An MCP server."""

    @property
    def inside(self) -> bool: ...

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        meta: dict[str, Any],
        timeout_s: float,
        effect: bool,
        leaving: Leaving | None,
    ) -> CallToolResult: ...


class NamedServer(ToolServer, Protocol):
    """A server of the registry: it has a name, and its tools are known once it was reached."""

    @property
    def name(self) -> str: ...

    @property
    def tools(self) -> dict[str, Tool]: ...

    async def ready(self, within_s: float) -> bool: ...


class ToolServers(Protocol):
    """All servers of the registry together."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def tools(self) -> dict[str, Tool]: ...

    def away(self) -> dict[str, str]: ...

    async def find(self, name: str) -> tuple[Tool | None, NamedServer]: ...
