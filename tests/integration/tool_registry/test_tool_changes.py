"""A server that says that its tools have changed is asked for them at once, over both eras of MCP."""

from __future__ import annotations

import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import Tool

from wayline.contracts.tools import ListTools, ToolList
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving

from .test_servers import connected, program

MODERN_SERVER = """
from mcp.server.mcpserver import Context, MCPServer
listings = 0

class Growing(MCPServer):
    async def list_tools(self):
        global listings
        listings += 1
        return await super().list_tools()

server = Growing("growing")

def added() -> str:
    return "added"

@server.tool()
def listed() -> int:
    return listings

@server.tool()
async def grow(ctx: Context) -> str:
    server.add_tool(added)
    await ctx.notify_tools_changed()
    return "grown"

server.run()
"""
OLD_SERVER = """
import json, sys
tools = ["grow"]
about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": True}},
         "serverInfo": {"name": "growing", "version": "1"}}

def write(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        write(id=asked["id"], result=about)
    elif asked["method"] == "tools/list":
        listed = [{"name": name, "inputSchema": {"type": "object"}} for name in tools]
        write(id=asked["id"], result={"tools": listed})
    elif asked["method"] == "tools/call":
        tools.append("added")
        write(method="notifications/tools/list_changed")
        write(id=asked["id"], result={"content": [{"type": "text", "text": "grown"}]})
    else:
        write(id=asked["id"], error={"code": -32601, "message": "no such method"})
"""


async def until_listed_at_the_start(platform) -> None:
    """Wait for the listing that follows the begin of a stream of changes: a tool added before it needs no news."""
    asked = 0

    async def is_listed() -> bool:
        nonlocal asked
        asked += 1
        reply = await platform.call(platform.ask("growing__listed", job=f"listed-{asked}"))
        return int(reply.content) >= 2

    await until(is_listed, why="the tools are listed again as the stream of changes begins")


async def until_added(platform) -> None:
    async def is_listed() -> bool:
        listed = await platform.bus.ask(ListTools(tenant=platform.tenant), ToolList)
        return "growing__added" in {tool.name for tool in listed.tools}

    await until(is_listed, why="the added tool is listed")


@pytest.mark.parametrize("text", [MODERN_SERVER, OLD_SERVER], ids=["2026-07-28", "2025-11-25"])
async def test_tools_that_a_server_adds_are_offered_without_a_poll(platform, text):
    await platform.registry(program(platform, "growing", text, effects={"listed": "read"}), probe_every_s=600)
    await connected(platform, "growing")
    if text is MODERN_SERVER:
        await until_listed_at_the_start(platform)

    grown = await platform.call(platform.ask("growing__grow"))

    assert grown.content == "grown"
    await until_added(platform)


async def test_tools_that_an_http_server_adds_are_offered_without_a_poll(platform):
    listings: list[int] = []

    class Growing(MCPServer):
        async def list_tools(self) -> list[Tool]:
            tools = await super().list_tools()
            listings.append(len(tools))
            return tools

    server = Growing("growing")

    @server.tool()
    async def grow(ctx: Context) -> str:
        server.add_tool(lambda: "added", name="added")
        await ctx.notify_tools_changed()
        return "grown"

    async with serving(server) as url:
        await platform.registry({"name": "growing", "url": url}, probe_every_s=600)
        await connected(platform, "growing")
        # Also as the stream of changes begins: a tool that is added before that needs no news.
        await until(lambda: len(listings) >= 2, why="the tools are listed again")

        grown = await platform.call(platform.ask("growing__grow"))

        assert grown.content == "grown"
        await until_added(platform)
