"""The built-in tools, served by an MCP server inside this process: one module a tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import CodeType
from typing import Any

from wayline.contracts.server_config import ServerSettings, ToolSettings
from wayline.contracts.tools import BUILTIN, MEMORY_TOOLS, MEMORY_WRITES, TASK_TOOLS, Effect
from wayline.tool_registry.builtin_tools.calculator import calculator
from wayline.tool_registry.builtin_tools.call_meta import call_meta
from wayline.tool_registry.builtin_tools.cluster_by_similarity import cluster_by_similarity_tool
from wayline.tool_registry.builtin_tools.date_calculate import date_calculate
from wayline.tool_registry.builtin_tools.detect_dependencies import detect_dependencies_tool
from wayline.tool_registry.builtin_tools.get_current_time import get_current_time
from wayline.tool_registry.builtin_tools.get_document_context import get_document_context_tool
from wayline.tool_registry.builtin_tools.image_generate import image_generate_tool
from wayline.tool_registry.builtin_tools.image_tools import ImageTools
from wayline.tool_registry.builtin_tools.memory_tools import MemoryRequests, memory_tools
from wayline.tool_registry.builtin_tools.planning_tools import PlanningTools
from wayline.tool_registry.builtin_tools.query_task_graph import query_task_graph_tool
from wayline.tool_registry.builtin_tools.search_knowledge import search_knowledge_tool
from wayline.tool_registry.builtin_tools.semantic_search import semantic_search_tool
from wayline.tool_registry.builtin_tools.web_fetch import web_fetch_tool
from wayline.tool_registry.builtin_tools.web_search import web_search_tool
from wayline.tool_registry.web.web_tools import WebTools

__all__ = ["MemoryRequests", "PlanningTools", "builtin_settings", "call_meta", "make_builtin_server"]

_FOR_PLANNING = (
    semantic_search_tool,
    get_document_context_tool,
    detect_dependencies_tool,
    query_task_graph_tool,
    cluster_by_similarity_tool,
)
_READING = ("calculator", "date_calculate", "get_current_time", "search_knowledge", "web_fetch", "web_search")
# They try again themselves, and what a search costs is not to be paid a second time unseen.
_OF_STRANGERS = ToolSettings(untrusted=True, retry_after_s=())


def builtin_settings(web: WebTools, images: ImageTools | None) -> ServerSettings:
    """Return the built-in tools' server as the installation's settings would list it."""
    charge = web.search.charge if web.search is not None else None
    image = ToolSettings(charge=images.charge, timeout_s=images.timeout_s) if images is not None else ToolSettings()
    return ServerSettings(
        name=BUILTIN,
        url="inside:",
        trusted=True,
        effects=dict.fromkeys((*_READING, *TASK_TOOLS), Effect.READ)
        | {"image_generate": Effect.ONCE}
        | dict.fromkeys(MEMORY_TOOLS - MEMORY_WRITES, Effect.READ)
        # The same key again is the same fact.
        | dict.fromkeys(MEMORY_WRITES, Effect.IDEMPOTENT),
        tools={
            "web_fetch": _OF_STRANGERS,
            "web_search": _OF_STRANGERS.model_copy(update={"charge": charge}),
            "image_generate": image,
        },
    )


def make_builtin_server(
    planning: PlanningTools, memory: MemoryRequests, web: WebTools, images: ImageTools | None
) -> Any:
    """Build an MCP server with the built-in tools; those of the web and of images only where they are configured."""
    from mcp.server import MCPServer

    tools = [
        search_knowledge_tool(planning.search),
        *memory_tools(memory),
        get_current_time,
        calculator,
        date_calculate,
    ]
    tools += [make(planning) for make in _FOR_PLANNING]
    if web.pages is not None:
        tools.append(web_fetch_tool(web.pages))
    if web.search is not None:
        tools.append(web_search_tool(web.search))
    if images is not None:
        tools.append(image_generate_tool(images))
    return MCPServer("wayline", log_level="WARNING", tools=[_as_tool(tool) for tool in tools])


@dataclass(frozen=True)
class _Written:
    """A tool's function as it is written, whatever it is bound to."""

    code: CodeType
    function: Callable[..., Any] = field(compare=False)


def _as_tool(function: Callable[..., Any]) -> Any:
    """Return a function as the MCP library's tool."""
    return _described(_Written(function.__code__, function)).model_copy(update={"fn": function})


@cache
def _described(written: _Written) -> Any:
    """Return what the MCP library works out of a signature: 4 ms a tool, once a process and not once a registry."""
    from mcp.server.mcpserver.tools import Tool

    return Tool.from_function(written.function, structured_output=False)
