"""A result that has loaded tools, with their definitions: what a provider with deferred tools is sent in its place."""

from __future__ import annotations

from pydantic import Field

from wayline.contracts.chat import ToolMessage
from wayline.contracts.tools import ToolDefinition


class LoadingMessage(ToolMessage):
    """A result that loads tools. Its JSON is that of a plain result: the log has the definitions in an event before.

    It holds them itself, so that what is sent of it depends on nothing that comes after it.
    """

    definitions: tuple[ToolDefinition, ...] = Field(
        exclude=True, repr=False, description="Of all tools that `loaded` names, in its order, as they were then."
    )
