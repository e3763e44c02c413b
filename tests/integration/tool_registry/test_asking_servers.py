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
    """Asks a person in the middle of each call and answers with what it was told."""

    def __init__(self) -> None:
        self.told: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def hear(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        said = await request.json()
        if said.get("id") == "q1":
            self.told.set_result(said["result"])
        if "id" not in said or "method" not in said:
            return web.Response(status=202)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "mcp-session-id": "s"})
        await stream.prepare(request)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": said["id"]}
        if said["method"] == "tools/call":
            await stream.write(f"event: message\ndata: {json.dumps(QUESTION)}\n\n".encode())
            told = await self.told
            reply["result"] = {"content": [{"type": "text", "text": f"told to {told['action']}"}]}
        elif result := RESULTS.get(said["method"]):
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
    told, note = reply.content.split("\n")
    assert told == "told to decline"
    assert "asked a person: 'Which account?'" in note and "declined" in note
