"""Tools that a search has found, for providers that take their definitions where the result stands."""

from __future__ import annotations

from wayline.contracts.chat import ToolMessage
from wayline.contracts.tools import ToolDefinition
from wayline.llm.model import ModelRequest


def found_tools(result: ToolMessage, request: ModelRequest) -> tuple[ToolDefinition, ...]:
    """Return the tools that a result refers to; none where it says their definitions as text."""
    if result.loaded is None or not request.card.tool_references:
        return ()
    known = {tool.name: tool for tool in request.deferred}
    names = result.loaded.names
    # All or none: of a tool that is not known here, only the text says anything.
    return tuple(known[name] for name in names) if set(names) <= known.keys() else ()
