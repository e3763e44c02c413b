"""Choose, of the tools that fit a search, those that are returned to its caller."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.contracts.tools import FoundTool, FoundTools, SearchTools, may_use
from wayline.tool_registry.tool_search.index import Match

CANDIDATES_MAX = 100
"""Ranked tools that are looked at: those that the asker has or may not use take no place of the results."""
SCORE_SHARE_MIN = 0.2
"""Of the best score. What fits less shares no more than a common word with the query; measured, no set loses by it."""
NAMED_MAX = 3
"""Tools that are named only, because the asker has them or may not use them."""


def choose(ranked: Sequence[Match], ask: SearchTools, *, searched: int) -> FoundTools:
    """Return the best tools that an asker lacks and may use, and the names of better ones."""
    found: list[FoundTool] = []
    loaded: list[str] = []
    disabled: list[str] = []
    for tool, score, _ in ranked:
        if len(found) == ask.max_results or score < SCORE_SHARE_MIN * ranked[0].score:
            break
        if not may_use(tool.name, patterns=ask.patterns, off=ask.off):
            disabled.append(tool.name)
        elif tool.name in ask.loaded:
            loaded.append(tool.name)
        else:
            found.append(FoundTool(tool=tool, score=round(score, 3)))
    return FoundTools(
        tools=tuple(found),
        loaded=tuple(loaded[:NAMED_MAX]),
        disabled=tuple(disabled[:NAMED_MAX]),
        searched=searched,
    )
