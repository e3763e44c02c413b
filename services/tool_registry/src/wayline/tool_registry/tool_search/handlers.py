"""What the registry does with a search for tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from wayline.contracts.searched_tools import FoundTools, SearchTools, UnusableTool
from wayline.store import PostgresUnavailable
from wayline.tool_registry.calls.tool_servers import ToolServers
from wayline.tool_registry.definitions.definition_table import DefinitionTable
from wayline.tool_registry.definitions.definitions import PinnedAway
from wayline.tool_registry.definitions.tool_catalogue import Tool
from wayline.tool_registry.definitions.unusable_tools import unusable_tools
from wayline.tool_registry.tool_search import Entry, ToolIndexes, find_tools
from wayline.tool_registry.tool_search.tool_embeddings import ToolEmbeddings

PREPARED_MIN = 200
"""Tools of a tenant whose index takes long enough to be made before it is searched."""


@dataclass(frozen=True)
class SearchHandlers:
    """One coroutine a message."""

    servers: ToolServers
    embeddings: ToolEmbeddings
    definitions: DefinitionTable
    indexes: ToolIndexes = field(default_factory=ToolIndexes)
    preparing: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """Of each tenant, what makes its index ready."""

    async def search_tools(self, ask: SearchTools) -> FoundTools:
        """Find the tools that fit, among all of a tenant; those that cannot be called are named."""
        tools = await self.servers.tools(ask.tenant)
        entries, unusable = await self._entries(ask.tenant, tools)
        index = await self.indexes.of(ask.tenant, entries)
        similar = await self.embeddings.similar(ask.tenant, ask.query, index)
        found = find_tools(index, ask, similar, searched=len(tools), unusable=unusable)
        # The index may be that of a moment ago.
        there = tuple(one for one in found.tools if one.tool.name in tools)
        return found.model_copy(update={"tools": there})

    def prepare(self, tenant: str, tools: Mapping[str, Tool]) -> None:
        """Begin to index many tools before they are searched: a job that has just listed them may.

        Nobody waits for it: what it asks Postgres must not hold a listing up.
        """
        if len(tools) >= PREPARED_MIN and tenant not in self.preparing:
            preparing = asyncio.create_task(self._prepare(tenant, tools), name=f"tools of {tenant} for a search")
            self.preparing[tenant] = preparing
            preparing.add_done_callback(lambda _: self.preparing.pop(tenant, None))

    async def _prepare(self, tenant: str, tools: Mapping[str, Tool]) -> None:
        entries, _ = await self._entries(tenant, tools)
        self.indexes.prepare(tenant, entries)

    async def _entries(self, tenant: str, tools: Mapping[str, Tool]) -> tuple[list[Entry], dict[str, UnusableTool]]:
        """Return what is searched, and which of it nobody can call now."""
        # On a thread: five hundred definitions take a second.
        away = await asyncio.to_thread(unusable_tools, await self._pinned(tenant), self.servers.missing)
        unusable = {tool.name: one for tool, one in away if tool.name not in tools}
        about = await self.servers.instructions(tenant)
        entries = [Entry(tool.definition, about.get(tool.definition.server, "")) for _, tool in sorted(tools.items())]
        return [*entries, *(Entry(tool) for tool, _ in away if tool.name in unusable)], unusable

    async def _pinned(self, tenant: str) -> list[PinnedAway]:
        try:
            return await self.definitions.unusable(tenant)
        except PostgresUnavailable:
            # What can be called is found without it.
            return []
