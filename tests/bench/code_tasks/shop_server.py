"""An MCP server over stdio with the data of a shop: what the scripted tasks read."""

from __future__ import annotations

import json
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NOTE = "The customer asked for delivery to the side door; the parcel was weighed, sealed and handed to the carrier. "
ORDERS = [
    {"order": n, "customer": f"c{n % 7}", "due": f"2026-11-{n % 28 + 1:02d}", "amount": 10 * n, "note": NOTE * 6}
    for n in range(50)
]
PRODUCTS = [{"product": f"p{n}", "name": f"Thing {n}", "price": (n * 37) % 101, "text": NOTE * 3} for n in range(60)]
PAGE = 40
PAGES = 5


def visits(page: int) -> list[dict[str, Any]]:
    """Return a page of a log."""
    numbers = range(page * PAGE, (page + 1) * PAGE)
    return [{"visit": n, "path": f"/thing/{n % 11}", "ms": (n * 53) % 400, "agent": NOTE} for n in numbers]


ANSWERS: dict[str, Any] = {
    "orders": lambda _: ORDERS,
    "products": lambda _: PRODUCTS,
    "customer": lambda given: {"customer": given["key"], "name": given["key"].upper(), "city": "Delft"},
    "order": lambda given: {"order": given["key"], "customer": "c3", "parcel": f"k{given['key']}", "note": NOTE * 4},
    "parcel": lambda given: {"parcel": given["key"], "depot": "d5", "history": [NOTE] * 4},
    "depot": lambda given: {"depot": given["key"], "phone": "015 123", "rules": NOTE * 4},
    "stock": lambda given: {"product": given["key"], "left": len(given["key"]) % 3, "counted": NOTE * 2},
    "visits": lambda given: visits(int(given["key"])),
}
WITHOUT_KEY = ("orders", "products")
KEYED = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}


def listed() -> list[types.Tool]:
    return [
        types.Tool(
            name=name,
            description=f"Read {name} of the shop.",
            input_schema={"type": "object", "properties": {}} if name in WITHOUT_KEY else KEYED,
        )
        for name in ANSWERS
    ]


async def main() -> None:
    async def tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed())

    async def call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        found = ANSWERS[params.name](params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(type="text", text=json.dumps(found))])

    server = Server("shop", on_list_tools=tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
