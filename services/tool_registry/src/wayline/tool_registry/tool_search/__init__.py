"""Finds the tools that fit a task, by words alone."""

from wayline.tool_registry.tool_search.choose import CANDIDATES_MAX, choose
from wayline.tool_registry.tool_search.index import Entry, Match, ToolIndex
from wayline.tool_registry.tool_search.indexes import ToolIndexes

__all__ = ["CANDIDATES_MAX", "Entry", "Match", "ToolIndex", "ToolIndexes", "choose"]
