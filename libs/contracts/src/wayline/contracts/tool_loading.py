"""Which of an agent's tools are in every prompt; the others are found with `tool_search`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from wayline.contracts.agents import AgentConfig, ToolLoading
from wayline.contracts.tools import BUILTIN, MEMORY_TOOLS, ToolDefinition

ALWAYS_MAX = 15
"""Tools in every prompt of an agent that does not say which; with more, most are found."""
WILDCARDS = frozenset("*?[")


def always_loaded(
    config: AgentConfig, listed: Sequence[ToolDefinition], *, required: Sequence[str] = ()
) -> Sequence[ToolDefinition]:
    """Return the tools of every prompt, of those that the agent may use, in the order of the listing.

    Where the agent does not say: all where there are few, else those that the job requires, those that the agent names
    in full beside patterns, and built-in ones. Nothing says that a job will need one of the others.
    """
    if config.tools_loading is not None:
        loading = config.tools_loading
        return [
            tool
            for tool in listed
            if tool.name in required or is_never_deferred(tool) or _is_always(tool.name, loading)
        ]
    if len(listed) <= ALWAYS_MAX:
        return listed
    # A list of nothing but names says which tools the agent has, not which of them it needs most.
    named = config.tools if any(WILDCARDS & set(pattern) for pattern in config.tools) else ()
    builtin = [tool.name for tool in listed if tool.server == BUILTIN]
    memory = [tool.name for tool in listed if is_never_deferred(tool)]
    names = {tool.name for tool in listed}
    first = [name for name in dict.fromkeys((*required, *memory, *named, *builtin)) if name in names]
    chosen = frozenset(first[: max(ALWAYS_MAX, len(required))])
    return [tool for tool in listed if tool.name in chosen]


def is_never_deferred(tool: ToolDefinition) -> bool:
    """Return whether a tool is in every prompt of an agent that has it."""
    return tool.name in MEMORY_TOOLS and tool.server == BUILTIN


def _is_always(name: str, loading: ToolLoading) -> bool:
    return _longest(name, loading.always) >= max(1, _longest(name, loading.deferred))


def _longest(name: str, patterns: Sequence[str]) -> int:
    """Return the length of the longest pattern that fits; 0: none does."""
    return max((len(pattern) for pattern in patterns if fnmatchcase(name, pattern)), default=0)
