"""What a search will need is made ready beside a listing, which waits for none of it."""

from __future__ import annotations

import asyncio
from typing import Any

from wayline.contracts.tools import ListTools, ToolDefinition
from wayline.tool_registry.calls.handlers import CallHandlers
from wayline.tool_registry.definitions.tool_catalogue import Tool
from wayline.tool_registry.tool_search.handlers import PREPARED_MIN, SearchHandlers


def tool(number: int) -> Tool:
    name = f"s__t{number}"
    return Tool(ToolDefinition(name=name, server="s"), name, (), name, trusted=False)


class Servers:
    """A tenant's servers with many tools."""

    is_read = True
    missing: dict[str, str] = {}  # noqa: RUF012

    async def tools(self, _: str) -> dict[str, Tool]:
        return {one.name: one for one in map(tool, range(PREPARED_MIN))}

    async def unknown(self, _: str) -> dict[str, bool]:
        return {}

    async def instructions(self, _: str) -> dict[str, str]:
        return {}

    def away(self, _: str) -> dict[str, str]:
        return {}


class SilentPostgres:
    """A table of definitions that answers once it is let go."""

    def __init__(self) -> None:
        self.asked, self.answer = 0, asyncio.Event()

    async def unusable(self, _: str) -> list[Any]:
        self.asked += 1
        await self.answer.wait()
        return []


async def test_a_listing_does_not_wait_for_postgres():
    servers: Any = Servers()
    postgres: Any = SilentPostgres()
    nothing: Any = None
    search = SearchHandlers(servers, nothing, postgres)
    calls = CallHandlers(servers, nothing, nothing, search.prepare)

    for _ in range(3):
        listed = await asyncio.wait_for(calls.list_tools(ListTools(tenant="t", patterns=("*",))), 10)
        assert len(listed.tools) == PREPARED_MIN

    preparing = search.preparing["t"]
    postgres.answer.set()
    await preparing
    assert postgres.asked == 1
    assert search.preparing == {}
