"""Find the tools that fit a task, by words, and by meaning where the installation has an embedder."""

from wayline.tool_registry.tool_search.choose import choose, find_tools
from wayline.tool_registry.tool_search.fusion import fuse
from wayline.tool_registry.tool_search.index import Entry, Match, ToolIndex, ToolText
from wayline.tool_registry.tool_search.indexes import ToolIndexes

__all__ = ["Entry", "Match", "ToolIndex", "ToolIndexes", "ToolText", "choose", "find_tools", "fuse"]
