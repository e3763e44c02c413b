"""The tool-registry's MCP client, as the official suite starts it: `client.py URL`.

What a scenario needs besides connecting is told by its context in the environment; all tools are called the way
that the registry calls them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from wayline.contracts.mcp_servers import ServerSettings
from wayline.contracts.tools import InputAnswer
from wayline.tool_registry.adapters.mcp_server import McpServer
from wayline.tool_registry.arguments import Arguments
from wayline.tool_registry.asked_input import is_question
from wayline.tool_registry.catalogue import Tool
from wayline.tool_registry.settings import Settings
from wayline.tool_registry.tool_servers import ToolRequest

READY_S = 25.0
CALL_S = 10.0
VALUES: dict[str, Any] = {"string": "a", "number": 1, "integer": 1, "boolean": True, "object": {}, "array": []}
ECHO = "json_schema_echo"


async def main(url: str) -> None:
    """Connect to the scenario's server, and call its tools."""
    server = McpServer(ServerSettings(name="suite", url=url), Settings(), Arguments())
    server.start()
    try:
        await asyncio.wait_for(server.tried.wait(), READY_S)
        if server.problem is not None:
            raise SystemExit(f"the suite's server cannot be used: {server.problem}")
        tools = {tool.offered_as: tool for tool in server.tools.values()}
        for name, arguments in calls(tools):
            await call(server, name, arguments)
    finally:
        await server.stop()


def calls(tools: dict[str, Tool]) -> list[tuple[str, dict[str, Any]]]:
    """Return what is called: what the scenario's context says, else every tool with plain arguments."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if "toolCalls" in context:
        return [(one["name"], one["arguments"]) for one in context["toolCalls"]]
    if ECHO in tools:
        [other] = tools.keys() - {ECHO}
        return [(ECHO, {"schema": tools[other].definition.input_schema})]
    return [(name, plain(tool.definition.input_schema)) for name, tool in tools.items()]


def plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a value for each property that a schema requires."""
    properties = schema.get("properties", {})
    return {name: VALUES[properties.get(name, {}).get("type", "string")] for name in schema.get("required", [])}


async def call(server: McpServer, name: str, arguments: dict[str, Any]) -> None:
    """Call a tool, and answer its server's question as a person would, with yes."""
    answer: InputAnswer | None = None
    while True:
        request = ToolRequest(name, arguments, {}, CALL_S, effect=False, answer=answer)
        result = await server.call(request)
        if not is_question(result):
            return
        answers = {key: {"confirmed": True} for key in result.input_requests or {}}
        answer = InputAnswer(answers=answers, state=result.request_state)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
