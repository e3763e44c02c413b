"""What the MCP library works out of the built-in tools, for all registries that a fork server forks: 60 ms for each."""

from __future__ import annotations

from importlib import import_module
from unittest.mock import MagicMock

# By its name: a library imports no service. What the tools would talk to is not asked for a description.
import_module("wayline.tool_registry.builtin_tools").make_builtin_server(*(MagicMock() for _ in range(4)))
