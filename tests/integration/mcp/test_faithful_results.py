"""What a tool's server gives reaches an MCP client of ours as it was given."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from mcp_types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel

from wayline.testkit import Platform
from wayline.testkit.mcp_servers import serving
from wayline.testkit.media import png

from ..jobs.conftest import until_listed, with_tools
from .conftest import open_door

DATA = b64encode(b"RIFF....WAVE").decode()
BLOCKS: dict[str, Any] = {
    "text": TextContent(type="text", text="two orders", annotations=Annotations(audience=["user"], priority=0.5)),
    "image": ImageContent(type="image", data=b64encode(png(4, 3)).decode(), mime_type="image/png"),
    "audio": AudioContent(type="audio", data=DATA, mime_type="audio/wav"),
    "link": ResourceLink(uri="db://orders", name="orders", title="All orders", mime_type="text/csv"),
    "embedded text": EmbeddedResource(
        type="resource", resource=TextResourceContents(uri="db://1", mime_type="text/plain", text="one")
    ),
    "embedded bytes": EmbeddedResource(
        type="resource", resource=BlobResourceContents(uri="db://2", mime_type="application/pdf", blob=DATA)
    ),
}
LARGE = 2_000
"""Orders whose JSON is larger than what is kept as values."""


class Orders(BaseModel):
    """Orders."""

    orders: list[dict[str, Any]]


def shop() -> MCPServer:
    server = MCPServer("shop")

    @server.tool()
    def show(kind: str) -> CallToolResult:
        """Show a block of content."""
        return CallToolResult(content=[BLOCKS[kind]], _meta={"acme/id": 7, "wayline/error": "forged"})

    @server.tool()
    def refuse() -> CallToolResult:
        """Fail, with an image."""
        return CallToolResult(content=[BLOCKS["text"], BLOCKS["image"]], is_error=True)

    @server.tool(title="Find orders", annotations=ToolAnnotations(destructive_hint=True), meta={"acme/page": 1})
    def find(most: int) -> Orders:
        """Find orders."""
        return Orders(orders=[{"id": 9400111899223197428490 + n, "note": "x" * 20} for n in range(most)])

    @server.tool()
    def names() -> list[str]:
        """Name the orders."""
        return ["a", "b"]

    return server


@pytest.fixture
async def door(platform: Platform):
    async with serving(shop()) as url:
        effects = {"show": "read", "find": "idempotent", "names": "read", "refuse": "read"}
        server = {"name": "shop", "url": url, "effects": effects, "untrusted": True}
        door = await open_door(platform, registry=with_tools(server))
        await until_listed(platform, "shop__show")
        yield door


async def test_a_client_is_given_what_a_tools_server_gave(door):
    for mode in ("auto", "legacy"):
        async with door.client(await door.key(), mode=mode) as client:
            for kind in BLOCKS:
                await a_block_stays_as_it_is(client, kind)
            await a_failure_keeps_its_blocks(client)
            await a_definition_keeps_title_schema_and_hints(client)
            for most in (2, LARGE):
                await structured_content_stays_and_fits_its_schema(client, most)
            listed = await client.call_tool("shop__names", {})
            assert listed.structured_content == {"result": ["a", "b"]}


async def a_block_stays_as_it_is(client: Client, kind: str) -> None:
    result = await client.call_tool("shop__show", {"kind": kind})

    assert (result.content, result.is_error) == ([BLOCKS[kind]], False)
    # What the library adds says which server this is: ours.
    meta = {name: one for name, one in (result.meta or {}).items() if not name.startswith("io.modelcontextprotocol/")}
    assert meta == {"acme/id": 7, "wayline/effect": "read", "wayline/untrusted": True}


async def a_failure_keeps_its_blocks(client: Client) -> None:
    failed = await client.call_tool("shop__refuse", {})

    assert (failed.content, failed.is_error) == ([BLOCKS["text"], BLOCKS["image"]], True)
    assert (failed.meta or {})["wayline/error"] == "tool_failed"


async def a_definition_keeps_title_schema_and_hints(client: Client) -> None:
    [find] = [tool for tool in (await client.list_tools()).tools if tool.name == "shop__find"]

    assert (find.title, (find.output_schema or {})["properties"].keys()) == ("Find orders", {"orders"})
    assert find.annotations == ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=True)
    assert find.meta == {"acme/page": 1, "wayline/effect": "idempotent", "wayline/untrusted": True}


async def structured_content_stays_and_fits_its_schema(client: Client, most: int) -> None:
    # The client itself refuses a result that does not fit the schema.
    found = await client.call_tool("shop__find", {"most": most})

    assert [one["id"] for one in found.structured_content["orders"]] == [
        9400111899223197428490 + n for n in range(most)
    ]


COUNTS = {"type": "array", "items": {"type": "integer"}}


def counter() -> Server[Any]:
    """Return a server whose structured content is no object, as the newest protocol allows."""

    async def tools(_: Any, __: Any) -> ListToolsResult:
        schemas = {"count": COUNTS, "odd": {"type": "object", "required": "all"}}
        takes = {"type": "object"}
        return ListToolsResult(tools=[Tool(name=n, input_schema=takes, output_schema=s) for n, s in schemas.items()])

    async def call(_: Any, __: Any) -> CallToolResult:
        return CallToolResult(content=[BLOCKS["text"]], structured_content=[1, 2])

    return Server("counter", on_list_tools=tools, on_call_tool=call)


async def test_structured_content_that_is_no_object_reaches_clients_of_every_protocol(platform: Platform):
    async with serving(counter()) as url:
        door = await open_door(platform, registry=with_tools({"name": "counter", "url": url}))
        await until_listed(platform, "counter__count")
        seen = [await counted(door, mode) for mode in ("auto", "legacy")]

    assert seen == [(COUNTS, [1, 2]), (None, {"result": [1, 2]})]


async def counted(door: Any, mode: str) -> tuple[Any, Any]:
    async with door.client(await door.key(), mode=mode) as client:
        [count] = [tool for tool in (await client.list_tools()).tools if tool.name == "counter__count"]
        result = await client.call_tool("counter__count", {})
    assert (result.content, result.is_error) == ([BLOCKS["text"]], False)
    return count.output_schema, result.structured_content
