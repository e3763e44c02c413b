"""Which tools an agent has always, finds by search, or may not use: lists of patterns, and choices for single tools.

As docs/tools.md has it: `*` does not stand for tools of the bus, and the longest pattern that fits a tool counts.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

State = Literal["always", "deferred", "off"]


@dataclass(frozen=True, slots=True)
class ToolLists:
    """The lists of a configuration, each of names or patterns."""

    tools: tuple[str, ...] | None = None
    """What it may use; None: the tenant's settings say."""
    always: tuple[str, ...] | None = None
    """What is in every prompt; None: Wayline chooses."""
    deferred: tuple[str, ...] = ()
    off: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ToolLists:
        """Return the lists of a configuration as it is saved: what it leaves to the settings is not there."""
        loading = config.get("tools_loading")
        return cls(
            tools=None if config.get("tools") is None else tuple(config["tools"]),
            always=None if loading is None else tuple(loading.get("always", ())),
            deferred=() if loading is None else tuple(loading.get("deferred", ())),
            off=tuple(config.get("tools_off") or ()),
        )

    def fields(self) -> dict[str, Any]:
        """Return the fields of a configuration that has these lists."""
        loading = None if self.always is None else {"always": [*self.always], "deferred": [*self.deferred]}
        fields: dict[str, Any] = {"tools_loading": loading, "tools_off": [*self.off]}
        return fields if self.tools is None else {"tools": [*self.tools], **fields}


@dataclass(frozen=True, slots=True)
class ToolsNow:
    """What the lists of an agent come to, as the API says it."""

    usable: frozenset[str]
    loaded: frozenset[str]

    def state(self, name: str) -> State:
        """Return what a tool is to the agent."""
        if name not in self.usable:
            return "off"
        return "always" if name in self.loaded else "deferred"


def chosen(lists: ToolLists, choices: Mapping[str, State], *, now: ToolsNow, inherited: Sequence[str]) -> ToolLists:
    """Return the lists after choices for single tools. `inherited`: the patterns of the tenant's settings."""
    for name, state in choices.items():
        if state == now.state(name):
            continue
        if state == "off":
            lists = replace(lists, off=(*_without(lists.off, name), name))
        else:
            if name not in now.usable:
                lists = _allowed(lists, name, inherited)
            lists = _loaded(lists, name, state, now, inherited)
    return lists


def _allowed(lists: ToolLists, name: str, inherited: Sequence[str]) -> ToolLists:
    """Take a tool off the list of those that are off; one that another list leaves out is added to what may be used."""
    patterns = tuple(inherited) if lists.tools is None else lists.tools
    was_off = name in lists.off
    lists = replace(lists, off=_without(lists.off, name))
    if was_off and any(fnmatchcase(name, pattern) for pattern in patterns):
        return lists
    return replace(lists, tools=(*_without(patterns, name), name))


def _loaded(lists: ToolLists, name: str, state: State, now: ToolsNow, inherited: Sequence[str]) -> ToolLists:
    """Put a tool on the list that it is to be on; what Wayline chose until now becomes a list that says so."""
    patterns = tuple(inherited) if lists.tools is None else lists.tools
    always = tuple(sorted(now.loaded)) if lists.always is None else lists.always
    deferred = patterns if lists.always is None else lists.deferred
    always, deferred = _without(always, name), _without(deferred, name)
    if state == "always":
        return replace(lists, always=(*always, name), deferred=deferred)
    return replace(lists, always=always, deferred=(*deferred, name))


def _without(patterns: Sequence[str], name: str) -> tuple[str, ...]:
    return tuple(pattern for pattern in patterns if pattern != name)
