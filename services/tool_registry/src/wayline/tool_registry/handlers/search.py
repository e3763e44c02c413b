"""What the registry does with a search for tools."""

from __future__ import annotations

from dataclasses import dataclass, field

from wayline.contracts.tools import FoundTools, SearchTools
from wayline.store import PostgresUnavailable
from wayline.tool_registry.adapters.tables.definition_table import DefinitionTable
from wayline.tool_registry.adapters.tool_embeddings import ToolEmbeddings
from wayline.tool_registry.tool_search import Entry, ToolIndexes, find_tools
from wayline.tool_registry.tools.definitions import PinnedAway
from wayline.tool_registry.tools.tool_servers import ToolServers
from wayline.tool_registry.tools.unusable_tools import unusable_tools


@dataclass(frozen=True)
class SearchHandlers:
    """One coroutine a message."""

    servers: ToolServers
    embeddings: ToolEmbeddings
    definitions: DefinitionTable
    indexes: ToolIndexes = field(default_factory=ToolIndexes)

    async def search_tools(self, ask: SearchTools) -> FoundTools:
        """Find the tools that fit, among all of a tenant; those that cannot be called are named."""
        tools = await self.servers.tools(ask.tenant)
        away = unusable_tools(await self._pinned(ask.tenant), self.servers.missing)
        unusable = {tool.name: one for tool, one in away if tool.name not in tools}
        about = await self.servers.instructions(ask.tenant)
        entries = [Entry(tool.definition, about.get(tool.definition.server, "")) for _, tool in sorted(tools.items())]
        entries += [Entry(tool) for tool, _ in away if tool.name in unusable]
        index = await self.indexes.of(ask.tenant, entries)
        similar = await self.embeddings.similar(ask.tenant, ask.query, index)
        return find_tools(index, ask, similar, searched=len(tools), unusable=unusable)

    async def _pinned(self, tenant: str) -> list[PinnedAway]:
        try:
            return await self.definitions.unusable(tenant)
        except PostgresUnavailable:
            # What can be called is found without it.
            return []
