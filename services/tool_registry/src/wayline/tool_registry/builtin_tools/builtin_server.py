"""The built-in MCP server: called in this process, without a session between us and it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import structlog

from wayline.contracts.server_config import ServerSettings
from wayline.tool_registry.builtin_tools import call_meta
from wayline.tool_registry.calls.tool_servers import ToolRequest
from wayline.tool_registry.connection.failures import built_in_error
from wayline.tool_registry.connection.mcp_library import load
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.tool_catalogue import admit_all
from wayline.tool_registry.errors import TimedOut
from wayline.tool_registry.servers.server_task import ServerTask
from wayline.tool_registry.settings import Settings

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
    from mcp_types import CallToolResult

log = structlog.get_logger()


class BuiltinServer(ServerTask):
    """Our own server, called like one that is elsewhere.

    The MCP library runs its tools as for any client. Only the session is left out: in it, one process would encode,
    check and trace both ends of a request to itself.
    """

    inside = True
    problem = None

    def __init__(
        self, make: Callable[[], MCPServer], server: ServerSettings, settings: Settings, arguments: Arguments
    ) -> None:
        super().__init__(server.name)
        self._make = make
        self._as_listed = server
        self._settings = settings
        self._arguments = arguments
        self._server: MCPServer | None = None
        self._context: Context[Any, Any] | None = None

    def hide(self, text: str) -> str:
        """Return a text as it is: our own server is sent no secrets."""
        return text

    async def _run(self) -> None:
        await load()
        from mcp.server.mcpserver import Context

        self._server = self._make()
        # One for all calls, because no tool of ours looks at it: the library would make one for each.
        self._context = Context(mcp_server=self._server)
        offered = await self._server.list_tools()
        retry_after_s = self._settings.retry_after_s
        admitted = admit_all(offered, self._as_listed, self._arguments, retry_after_s=retry_after_s, prefix=False)
        self.tools, self.left_out = admitted.tools, admitted.left_out
        self.known = True
        self._usable.set()
        self.tried.set()
        self.listed.set()

    async def call(self, request: ToolRequest) -> CallToolResult:
        """Call a tool. Raises NotBegun, AnswerLost, TimedOut, Unusable, or the error that stops the request."""
        assert self._server is not None
        if (stop := await request.stopped()) is not None:
            raise stop
        try:
            with call_meta(request.meta):
                async with asyncio.timeout(request.timeout_s):
                    answer = self._server.call_tool(request.tool, request.arguments, self._context)
                    # Only a tool that asks its caller something gives anything else.
                    return cast("CallToolResult", await answer)
        except TimeoutError:
            raise TimedOut(after_s=request.timeout_s) from None
        except Exception as error:
            if (refusal := _refusal(request.tool, error)) is None:
                raise built_in_error(error, timeout_s=request.timeout_s) from error
            return refusal


def _refusal(name: str, error: Exception) -> CallToolResult | None:
    """Return the result of a tool that failed; None: the failure is not the tool's."""
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp_types import CallToolResult, TextContent

    if not isinstance(error, ToolError):
        return None
    if isinstance(error, UnexpectedToolError):
        log.error("a built-in tool failed", tool=name, error=repr(error.__cause__), exc_info=error)
    return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
