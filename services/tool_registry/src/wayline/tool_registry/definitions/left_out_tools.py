"""Say which tools of a server are left out, and why."""

from __future__ import annotations

from collections.abc import Mapping

from wayline.tool_registry.definitions.visible_text import visible

LINES_MAX = 100
WHY_CHARS = 500


def left_out_lines(left_out: Mapping[str, str], *, nameless: int = 0) -> tuple[str, ...]:
    """Return a line for each tool that is left out, and for `nameless` ones whose names cannot be kept."""
    lines = [visible(f"{name} is left out: {why}"[:WHY_CHARS]) for name, why in left_out.items()]
    if nameless:
        lines.append(f"{nameless} left out: their names hold a secret, or characters that cannot be kept")
    more = len(lines) - LINES_MAX
    return tuple([*lines[:LINES_MAX], f"and {more} more"] if more > 0 else lines)
