"""An MCP server on its standard streams that needs nothing but Python, as text to put in front of a test's program.

It says the least that a program must: the official library is imported for two seconds of CPU, at each start.
"""

import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
UNKNOWN_METHOD = -32601


class ToolError(Exception):
    """What a tool raises to say that it failed."""


class MCPServer:
    """Answer for the functions that are decorated as tools, one request after the other."""

    def __init__(self, name: str, version: str = "1", instructions: str = "") -> None:
        self._info = {"serverInfo": {"name": name, "version": version}, "instructions": instructions}
        self._tools: dict[str, Callable[..., Any]] = {}

    def tool(self) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Offer a function as a tool."""

        def offer(function: Callable[..., Any]) -> Callable[..., Any]:
            self.add_tool(function, name=function.__name__)
            return function

        return offer

    def add_tool(self, function: Callable[..., Any], *, name: str) -> None:
        """Offer a function as a tool under a name."""
        self._tools[name] = function

    def run(self) -> None:
        """Serve until the other side closes the stream."""
        for line in sys.stdin:
            self.hear(json.loads(line))

    def hear(self, asked: dict[str, Any]) -> None:
        """Answer a message that is a request."""
        if "id" in asked and "method" in asked:
            answer = {"jsonrpc": "2.0", "id": asked["id"], **self.answer(asked["method"], asked.get("params", {}))}
            print(json.dumps(answer), flush=True)

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request, or its error; a program that answers otherwise overrides this."""
        if method == "initialize":
            version = params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, **self._info}}
        if method == "tools/list":
            return {"result": {"tools": [_described(name, tool) for name, tool in self._tools.items()]}}
        if method == "tools/call":
            return {"result": _called(self._tools[params["name"]], params.get("arguments") or {})}
        if method == "ping":
            return {"result": {}}
        return {"error": {"code": UNKNOWN_METHOD, "message": f"no method {method}"}}


def _described(name: str, tool: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(tool).parameters
    properties = {word: {"type": _type_of(one.annotation)} for word, one in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    described = {"name": name, "description": tool.__doc__ or "", "inputSchema": schema}
    if inspect.signature(tool).return_annotation == dict[str, str]:
        described["outputSchema"] = {"type": "object", "additionalProperties": {"type": "string"}}
    return described


def _type_of(annotation: Any) -> str:
    return TYPES[annotation if isinstance(annotation, str) else annotation.__name__]


def _called(tool: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        result = tool(**arguments)
    except Exception as error:
        return {"content": [{"type": "text", "text": f"Error executing tool: {error}"}], "isError": True}
    if isinstance(result, dict):
        return {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result}
    return {"content": [{"type": "text", "text": str(result)}]}


def plain_program(text: str) -> str:
    """Return the text of a program that has `MCPServer` and `ToolError` without importing them."""
    return f"{Path(__file__).read_text()}\n\n{text}"
