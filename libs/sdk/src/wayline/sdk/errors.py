"""What a tool's function may raise, and what the SDK raises.

ToolFailed      a tool could not do what it was asked
ToolsRefused    the registry does not offer the tools
"""

from __future__ import annotations


class ToolFailed(Exception):
    """The tool could not do what it was asked: the model reads the message."""


class ToolsRefused(Exception):
    """The registry does not offer these tools: the message says which and why."""
