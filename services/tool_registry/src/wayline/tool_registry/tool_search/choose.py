"""Find the tools that fit a search, and choose those that are returned to its caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from wayline.contracts.searched_tools import FoundTool, FoundTools, SearchTools, UnusableTool
from wayline.contracts.tenant_settings import SWITCHED_TOOLS
from wayline.contracts.tools import may_use
from wayline.tool_registry.tool_search.fusion import fuse
from wayline.tool_registry.tool_search.index import Match, ToolIndex

SCORE_SHARE_MIN = 0.1
"""Of the best score. What fits less shares no more than a common word with the query.

Measured on three public sets: at 0.2 less is found among ten in each, below 0.1 nothing more.
"""
NAMED_MAX = 3
"""Tools that are named only, because the asker has them or may not use them."""


def find_tools(
    index: ToolIndex,
    ask: SearchTools,
    similar: Mapping[int, float],
    *,
    searched: int,
    unusable: Mapping[str, UnusableTool],
) -> FoundTools:
    """Search an index by words, and by meaning where there are cosines, by place in it."""
    by_words = index.search(ask.query)
    # What the asker cannot use must not make the words of what it can use count for less.
    best = next((one.score for one in by_words if is_returnable(one.tool.name, ask, unusable)), None)
    return choose(fuse(by_words, similar, index, best=best), ask, searched=searched, unusable=unusable)


def choose(
    ranked: Sequence[Match], ask: SearchTools, *, searched: int, unusable: Mapping[str, UnusableTool] | None = None
) -> FoundTools:
    """Return the best tools that an asker lacks and may use, and the names of better ones.

    `unusable`: those that nobody can call now, by name. Only tools that can be returned are compared with each other,
    so that no other takes their place; what is named is compared with all.
    """
    known = unusable or {}
    found: list[FoundTool] = []
    named, score_min = _Named(), 0.0
    for tool, score, _ in ranked:
        if len(found) == ask.max_results:
            break
        if is_returnable(tool.name, ask, known):
            score_min = score_min or SCORE_SHARE_MIN * score
            if score < score_min:
                # Nor is anything named that fits less than this.
                break
            found.append(FoundTool(tool=tool, score=round(score, 3)))
        elif score >= SCORE_SHARE_MIN * ranked[0].score:
            named.add(tool.name, ask, known)
    return FoundTools(
        tools=tuple(found),
        loaded=tuple(named.loaded[:NAMED_MAX]),
        disabled=tuple(named.disabled[:NAMED_MAX]),
        unusable=tuple(named.unusable[:NAMED_MAX]),
        searched=searched,
    )


def is_returnable(name: str, ask: SearchTools, unusable: Mapping[str, UnusableTool]) -> bool:
    """Return whether an asker lacks a tool and can use it."""
    usable = name not in unusable and may_use(name, patterns=ask.patterns, off=ask.off)
    return usable and name not in ask.loaded


@dataclass(frozen=True)
class _Named:
    """Tools that are named only, the best first."""

    loaded: list[str] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)
    unusable: list[UnusableTool] = field(default_factory=list)

    def add(self, name: str, ask: SearchTools, unusable: Mapping[str, UnusableTool]) -> None:
        """Add a tool, with why it cannot be returned."""
        if (one := unusable.get(name)) is not None:
            self.unusable.append(_for_agent(one, ask))
        elif may_use(name, patterns=ask.patterns, off=ask.off):
            self.loaded.append(name)
        else:
            self.disabled.append(name)
            self.unusable.append(_not_allowed(name, ask))


def _for_agent(one: UnusableTool, ask: SearchTools) -> UnusableTool:
    """Add to why nobody can call a tool now what would keep the agent from it then."""
    if may_use(one.name, patterns=ask.patterns, off=ask.off):
        return one
    other = _not_allowed(one.name, ask)
    return UnusableTool(name=one.name, why=f"{one.why}, and {other.why}", how=f"{one.how}; {other.how}")


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
