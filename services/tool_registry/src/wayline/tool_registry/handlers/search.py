"""What the registry does with a search for tools."""

from __future__ import annotations

from dataclasses import dataclass, field

from wayline.contracts.tools import FoundTools, SearchTools
from wayline.tool_registry.adapters.tool_embeddings import ToolEmbeddings
from wayline.tool_registry.tool_search import CANDIDATES_MAX, Entry, ToolIndexes, choose, fuse
from wayline.tool_registry.tools.tool_servers import ToolServers


@dataclass(frozen=True)
class SearchHandlers:
    """One coroutine a message."""

    servers: ToolServers
    embeddings: ToolEmbeddings
    indexes: ToolIndexes = field(default_factory=ToolIndexes)

    async def search_tools(self, ask: SearchTools) -> FoundTools:
        """Find the tools that fit, among all of a tenant."""
        tools = await self.servers.tools(ask.tenant)
        about = await self.servers.instructions(ask.tenant)
        entries = [Entry(tool.definition, about.get(tool.definition.server, "")) for _, tool in sorted(tools.items())]
        index = await self.indexes.of(ask.tenant, entries)
        by_words = index.search(ask.query, at_most=CANDIDATES_MAX)
        similar = await self.embeddings.similar(ask.tenant, ask.query, index)
        return choose(fuse(by_words, similar, index), ask, searched=len(index))
