"""Say which tools count as `once` because nobody has declared their effect, and how to declare it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from wayline.contracts.mcp_servers import UndeclaredTool
from wayline.contracts.tools import Effect
from wayline.tool_registry.definitions.tool_catalogue import Tool
from wayline.tool_registry.definitions.visible_text import visible

SHOWN_MAX: Final = 100
NAMED_MAX: Final = 5
"""In a sentence."""


def undeclared_tools(tools: Iterable[Tool], declared: Mapping[str, Effect]) -> list[UndeclaredTool]:
    """Return the tools of a server that count as `once` without anybody's word, by name."""
    found = (tool for tool in tools if tool.effect is Effect.ONCE and tool.offered_as not in declared)
    return sorted(
        (UndeclaredTool(name=visible(tool.offered_as), proposed=tool.proposed) for tool in found),
        key=lambda one: one.name,
    )


def advice(server: str, undeclared: Sequence[UndeclaredTool]) -> str:
    """Return what these tools do to jobs and how to declare their effects, in sentences; empty: there are none."""
    if not undeclared:
        return ""
    names = ", ".join(one.name for one in undeclared[:NAMED_MAX])
    more = f" and {len(undeclared) - NAMED_MAX} more" if len(undeclared) > NAMED_MAX else ""
    told = (
        f"{names}{more}: no effect is declared, so each call counts as `once`; where nobody knows whether it acted, "
        "its job is parked until a person decides."
    )
    proposed = sum(one.proposed is not None for one in undeclared)
    if proposed:
        told += (
            f" The server itself proposes effects for {proposed} of them, which `wayline mcp set {server} "
            f"--accept-effects` or PUT /v1/mcp/servers/{server}?accept_effects=true declares."
        )
    return f"{told} `wayline mcp set {server} --effect TOOL=read` declares one (read, idempotent, reconcile or once)."
