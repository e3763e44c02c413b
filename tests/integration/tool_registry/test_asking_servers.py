"""A server that asks a person over an older MCP is declined at once, and the result says so."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from wayline.testkit import until

from .conftest import RegistryPlatform

ABOUT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"},
}
RESULTS: dict[str, Any] = {
    "initialize": ABOUT,
    "tools/list": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]},
}
QUESTION = {
    "jsonrpc": "2.0",
    "id": "q1",
    "method": "elicitation/create",
    "params": {"message": "Which account?", "requestedSchema": {"type": "object", "properties": {}}},
}


class AskingServer:
    """Asks a person in the middle of each call and answers with the action of the reply."""

    def __init__(self) -> None:
        self.elicited: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def hear(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        body = await request.json()
        if body.get("id") == "q1":
            self.elicited.set_result(body["result"])
        if "id" not in body or "method" not in body:
            return web.Response(status=202)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "mcp-session-id": "s"})
        await stream.prepare(request)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": body["id"]}
        if body["method"] == "tools/call":
            await stream.write(f"event: message\ndata: {json.dumps(QUESTION)}\n\n".encode())
            answer = await self.elicited
            reply["result"] = {"content": [{"type": "text", "text": f"told to {answer['action']}"}]}
        elif result := RESULTS.get(body["method"]):
            reply["result"] = result
        else:
            reply["error"] = {"code": -32601, "message": "no such method"}
        await stream.write(f"event: message\ndata: {json.dumps(reply)}\n\n".encode())
        return stream


@asynccontextmanager
async def asking_server():
    app = web.Application()
    app.router.add_route("*", "/mcp", AskingServer().hear)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


async def test_a_question_over_an_older_protocol_is_declined_and_told(platform: RegistryPlatform):
    async with asking_server() as url:
        await platform.registry({"name": "old", "url": url})
        await until(platform.hears, why="its tools are listed")

        reply = await platform.call(platform.ask("old__act"))

    assert reply.status == "success"
    content, note = reply.content.split("\n")
    assert content == "told to decline"
    assert "asked a person: 'Which account?'" in note and "declined" in note
