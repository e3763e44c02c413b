"""Choose, of the tools that fit a search, those that are returned to its caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from wayline.contracts.tenant_settings import SWITCHED_TOOLS
from wayline.contracts.tools import FoundTool, FoundTools, SearchTools, UnusableTool, may_use
from wayline.tool_registry.tool_search.index import Match

CANDIDATES_MAX = 100
"""Ranked tools that are looked at: those that the asker has or may not use take no place of the results."""
SCORE_SHARE_MIN = 0.2
"""Of the best score. What fits less shares no more than a common word with the query; measured, no set loses by it."""
NAMED_MAX = 3
"""Tools that are named only, because the asker has them or may not use them."""


def choose(
    ranked: Sequence[Match], ask: SearchTools, *, searched: int, unusable: Mapping[str, UnusableTool] | None = None
) -> FoundTools:
    """Return the best tools that an asker lacks and may use, and the names of better ones.

    `unusable`: those that nobody can call now, by name.
    """
    known = unusable or {}
    found: list[FoundTool] = []
    cannot: list[UnusableTool] = []
    loaded: list[str] = []
    disabled: list[str] = []
    for tool, score, _ in ranked:
        if len(found) == ask.max_results or score < SCORE_SHARE_MIN * ranked[0].score:
            break
        if (one := known.get(tool.name)) is not None:
            cannot.append(one)
        elif not may_use(tool.name, patterns=ask.patterns, off=ask.off):
            disabled.append(tool.name)
            cannot.append(_not_allowed(tool.name, ask))
        elif tool.name in ask.loaded:
            loaded.append(tool.name)
        else:
            found.append(FoundTool(tool=tool, score=round(score, 3)))
    return FoundTools(
        tools=tuple(found),
        loaded=tuple(loaded[:NAMED_MAX]),
        disabled=tuple(disabled[:NAMED_MAX]),
        unusable=tuple(cannot[:NAMED_MAX]),
        searched=searched,
    )


def _not_allowed(name: str, ask: SearchTools) -> UnusableTool:
    """Return why the agent may not use a tool, and what allows it."""
    if not may_use(name, patterns=ask.patterns):
        return UnusableTool(
            name=name,
            why="it is not among the agent's `tools`",
            how=f"add {name} to the `tools` of the agent (`wayline agents put`)",
        )
    pattern = next(pattern for pattern in ask.off if fnmatchcase(name, pattern))
    for switch, tools in SWITCHED_TOOLS.items():
        if pattern in tools:
            how = f"set `{switch}` to true in the agent, or `wayline settings set {switch}=on` where it leaves that out"
            return UnusableTool(name=name, why=f"the switch `{switch}` is off", how=how)
    how = f"take {pattern} out of the `tools_off` of the agent (`wayline agents put`)"
    return UnusableTool(name=name, why=f"it is among the agent's `tools_off` ({pattern})", how=how)
