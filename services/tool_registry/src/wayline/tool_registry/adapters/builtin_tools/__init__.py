"""The built-in tools, served by an MCP server inside this process: one module a tool."""

from __future__ import annotations

from typing import Any

from wayline.contracts.mcp_servers import ServerSettings
from wayline.contracts.tools import BUILTIN, Effect
from wayline.tool_registry.adapters.builtin_tools.calculator import calculator
from wayline.tool_registry.adapters.builtin_tools.call_meta import call_meta
from wayline.tool_registry.adapters.builtin_tools.date_calculate import date_calculate
from wayline.tool_registry.adapters.builtin_tools.get_current_time import get_current_time
from wayline.tool_registry.adapters.builtin_tools.search_knowledge import Search, search_knowledge_tool

__all__ = ["SERVER", "Search", "builtin_server", "call_meta"]

SERVER = ServerSettings(
    name=BUILTIN,
    url="inside:",
    trusted=True,
    effects=dict.fromkeys(("calculator", "date_calculate", "get_current_time", "search_knowledge"), Effect.READ),
)


def builtin_server(search: Search) -> Any:
    """Build an MCP server with the built-in tools."""
    from mcp.server import MCPServer

    server = MCPServer("wayline", log_level="WARNING")
    for tool in (search_knowledge_tool(search), get_current_time, calculator, date_calculate):
        server.tool(structured_output=False)(tool)
    return server
