"""Find the tools that an agent names and that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from wayline.contracts.nearest import nearest_names
from wayline.contracts.tools import ToolList

WARNINGS_MAX = 20


def unknown_tools(patterns: Iterable[str], there: ToolList) -> tuple[str, ...]:
    """Return a sentence for each name or pattern that matches no tool, with the nearest name and what is away."""
    names = [tool.name for tool in there.tools]
    away = f"; not reached at the moment: {', '.join(server.name for server in there.away)}" if there.away else ""
    why = {tool.name: tool.why for tool in there.missing}
    missing = [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)]
    warnings = [
        why.get(pattern) or f"no tool is called {pattern!r}{_nearest(pattern, names)}{away}"
        for pattern in missing[:WARNINGS_MAX]
    ]
    more = len(missing) - len(warnings)
    return (*warnings, f"{more} more tools do not exist either") if more else tuple(warnings)


def _nearest(pattern: str, names: list[str]) -> str:
    near = nearest_names(pattern.rstrip("*"), names)
    return f" (nearest: {near[0]})" if near else ""
