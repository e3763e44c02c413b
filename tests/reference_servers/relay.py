"""A program's tools over streamable HTTP: what stands between an MCP server on its standard streams and a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.server import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult

from wayline.testkit.mcp_servers import serving


@asynccontextmanager
async def relayed(config: dict[str, Any]) -> AsyncIterator[str]:
    """Start a program and yield the URL at which its tools are."""
    program = StdioServerParameters(command=config["command"], args=config["args"], env=config["env"])
    async with Client(program) as client:

        async def list_tools(*_: Any) -> ListToolsResult:
            return ListToolsResult(tools=(await client.list_tools()).tools)

        async def call_tool(_: Any, params: CallToolRequestParams) -> CallToolResult:
            return await client.call_tool(params.name, params.arguments)

        server = Server[Any]("relay", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
        async with serving(server) as url:
            yield url
