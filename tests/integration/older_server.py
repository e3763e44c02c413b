"""An MCP server of the 2025-11-25 protocol that asks a person in the middle of a call, over streamable HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Ask = Callable[[str, Json], Awaitable[Json]]
"""Asks a person for an object with these properties; returns the answer: `action`, and `content` where accepted."""
Act = Callable[[Ask], Awaitable[str]]
"""What the tool does: it returns its text, or raises ServerError."""

ABOUT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"},
}


class ServerError(Exception):
    """Ends a call with a JSON-RPC error."""


@dataclass
class OlderServer:
    """Serves one tool, `act`, and counts its calls and what it was answered."""

    act: Act
    annotations: Json = field(default_factory=dict)
    calls: int = 0
    answers: list[Json] = field(default_factory=list)
    url: str = ""
    _asked: dict[str, asyncio.Future[Json]] = field(default_factory=dict)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[OlderServer]:
        """Serve on a free port."""
        app = web.Application()
        app.router.add_route("*", "/mcp", self._hear)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _hear(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        body = await request.json()
        if body.get("id") in self._asked:
            self._asked.pop(body["id"]).set_result(body["result"])
        if "id" not in body or "method" not in body:
            return web.Response(status=202)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "mcp-session-id": "s"})
        await stream.prepare(request)
        reply: Json = {"jsonrpc": "2.0", "id": body["id"]}
        match body["method"]:
            case "initialize":
                reply["result"] = ABOUT
            case "tools/list":
                tool = {"name": "act", "inputSchema": {"type": "object"}, "annotations": self.annotations}
                reply["result"] = {"tools": [tool]}
            case "tools/call":
                reply |= await self._call(stream)
            case _:
                reply["error"] = {"code": -32601, "message": "no such method"}
        await _send(stream, reply)
        return stream

    async def _call(self, stream: web.StreamResponse) -> Json:
        self.calls += 1

        async def ask(message: str, properties: Json) -> Json:
            number = f"q{len(self.answers) + len(self._asked) + 1}"
            answered = self._asked[number] = asyncio.get_running_loop().create_future()
            schema = {"type": "object", "properties": properties, "required": list(properties)}
            params = {"message": message, "requestedSchema": schema}
            await _send(stream, {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params})
            answer = await answered
            self.answers.append(answer)
            return answer

        try:
            return {"result": {"content": [{"type": "text", "text": await self.act(ask)}]}}
        except ServerError as error:
            return {"error": {"code": -32603, "message": str(error)}}


async def _send(stream: web.StreamResponse, message: Json) -> None:
    await stream.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
