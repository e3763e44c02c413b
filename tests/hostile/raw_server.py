"""An MCP server that answers what a case says, byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

HANG_S = 3_600.0
Answer = Callable[[str, dict[str, Any]], Any]
"""Given a method and its parameters, returns a result, an error, the whole body as bytes, or HANG."""
HANG = object()


class RpcError(Exception):
    """An error answer of the server."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@asynccontextmanager
async def raw_server(answer: Answer) -> AsyncIterator[str]:
    """Serve a server on a free port, and yield its URL."""

    async def take(request: web.Request) -> web.Response:
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        if message["method"] == "initialize":
            return _json(message, _initialized(message["params"]))
        try:
            found = answer(message["method"], message.get("params") or {})
        except RpcError as error:
            body = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": error.code, "message": str(error)}}
            return web.json_response(body)
        if found is HANG:
            await asyncio.sleep(HANG_S)
        if isinstance(found, bytes):
            whole = found.replace(b"$ID", json.dumps(message["id"]).encode())
            return web.Response(body=whole, content_type="application/json")
        return _json(message, found)

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/mcp", take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


def _json(message: dict[str, Any], result: Any) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})


def _initialized(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "raw", "version": "1"},
    }
