"""The built-in MCP server: called in this process, without a session between us and it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import structlog

from wayline.tool_registry.adapters.builtin_tools import SERVER, call_meta
from wayline.tool_registry.adapters.failures import call_error
from wayline.tool_registry.adapters.mcp_library import load
from wayline.tool_registry.arguments import Arguments
from wayline.tool_registry.catalogue import Tool, admit_all
from wayline.tool_registry.errors import TimedOut
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tool_servers import Leaving

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
    from mcp_types import CallToolResult

log = structlog.get_logger()

CLOSE_S = 5.0


class BuiltinServer:
    """A server of ours, behind the same few methods as one that is elsewhere.

    The MCP library runs its tools as for any client; only the session, in which both ends of a request would be
    encoded, checked and traced for one process to talk to itself, is left out.
    """

    inside = True
    problem = None

    def __init__(self, make: Callable[[], MCPServer], settings: Settings, arguments: Arguments) -> None:
        self.name = SERVER.name
        self.tools: dict[str, Tool] = {}
        self.tried = asyncio.Event()
        """Set once the server has been made."""
        self._make = make
        self._settings = settings
        self._arguments = arguments
        self._server: MCPServer | None = None
        self._context: Context[Any, Any] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._open(), name=f"mcp server {self.name}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSE_S)

    async def _open(self) -> None:
        await load()
        from mcp.server.mcpserver import Context

        self._server = self._make()
        # One for all calls, because no tool of ours looks at it: the library would make one for each.
        self._context = Context(mcp_server=self._server)
        offered = await self._server.list_tools()
        retry_after_s = self._settings.retry_after_s
        self.tools = admit_all(offered, SERVER, self._arguments, retry_after_s=retry_after_s, prefix=False)
        self.tried.set()

    async def ready(self, within_s: float) -> bool:
        """Return whether the server has been made, after waiting a little."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.tried.wait(), within_s)
        return self.tried.is_set()

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        meta: dict[str, Any],
        timeout_s: float,
        effect: bool,
        leaving: Leaving | None = None,
    ) -> CallToolResult:
        """Call a tool by its name; raises NotBegun, Cut, TimedOut or Unusable."""
        assert self._server is not None
        if leaving is not None and (stop := await leaving()) is not None:
            raise stop
        try:
            with call_meta(meta):
                async with asyncio.timeout(timeout_s):
                    # Only a tool that asks its caller something gives anything else.
                    return cast("CallToolResult", await self._server.call_tool(name, arguments, self._context))
        except TimeoutError:
            raise TimedOut(after_s=timeout_s) from None
        except Exception as error:
            if (refusal := _refusal(name, error)) is None:
                raise call_error(error, timeout_s=timeout_s) from error
            return refusal


def _refusal(name: str, error: Exception) -> CallToolResult | None:
    """Return what a tool that failed says to its caller; None: the failure is not the tool's."""
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp_types import CallToolResult, TextContent

    if not isinstance(error, ToolError):
        return None
    if isinstance(error, UnexpectedToolError):
        log.error("a built-in tool failed", tool=name, error=repr(error.__cause__), exc_info=error)
    return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
