"""Tools that a search has found, for providers that take their definitions where the result stands."""

from __future__ import annotations

from wayline.contracts.chat import ChatMessage
from wayline.contracts.loaded_tools import LoadingMessage
from wayline.contracts.tools import ToolDefinition
from wayline.llm.model import ModelRequest
from wayline.llm.tokens import estimate, estimate_definitions


def found_tools(request: ModelRequest) -> dict[int, tuple[ToolDefinition, ...]]:
    """Return the tools that results refer to, by the place of the message; other results say definitions as text.

    The form of a result depends on the tools of every prompt and on the results before it, never on what comes later.
    """
    found: dict[int, tuple[ToolDefinition, ...]] = {}
    if not request.card.tool_references:
        return found
    offered = {tool.name for tool in request.tools}
    first: dict[str, ToolDefinition] = {}
    for at, message in enumerate(request.messages):
        if message.role != "tool" or not isinstance(message, LoadingMessage):
            continue
        # All or none. A request has one definition of each name: any other is said as text.
        if all(tool.name not in offered and first.get(tool.name, tool) == tool for tool in message.definitions):
            found[at] = message.definitions
            first |= {tool.name: tool for tool in message.definitions}
    return found


def loaded_tokens(request: ModelRequest) -> int:
    """Estimate what found definitions take of a prompt, beyond the texts of the results whose place they take."""
    found = found_tools(request)
    return sum(tokens_beyond_text(request.messages[at]) for at in found) if found else 0


def tokens_beyond_text(message: ChatMessage) -> int:
    """Return how many tokens more a result has as definitions than as text; 0: its text is as long."""
    if not isinstance(message, LoadingMessage):
        return 0
    return max(0, estimate_definitions(message.definitions) - estimate(message.content))
