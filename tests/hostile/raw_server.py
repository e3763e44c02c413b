"""An MCP server that answers what a case says, byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

HANG_S = 3_600.0
Answer = Callable[[str, dict[str, Any]], Any]
"""Given a method and its parameters, returns a result, an error, the whole body as bytes, or HANG."""
HANG = object()


BUFFER_MAX_BYTES = 1_000_000
UNREAD_PAUSE_S = 0.1
"""Before the next piece, where more than that is not read yet."""


@dataclass(frozen=True)
class Packed:
    """A body in content encodings, such as `gzip`, or `gzip, gzip`."""

    body: Callable[[], bytes]
    encoding: str


@dataclass(frozen=True)
class Wire:
    """What is written to the socket in place of an answer, until the other side has left."""

    pieces: Callable[[], Iterable[bytes]]
    pause_s: float = 0.0


class RpcError(Exception):
    """An error answer of the server."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@asynccontextmanager
async def raw_server(answer: Answer) -> AsyncIterator[str]:
    """Serve a server on a free port, and yield its URL."""

    async def take(request: web.Request) -> web.StreamResponse:
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
        if isinstance(found, bytes):
            whole = found.replace(b"$ID", json.dumps(message["id"]).encode())
            return web.Response(body=whole, content_type="application/json")
        return await odd(request, found) or _json(message, found)

    async with served(take) as origin:
        yield f"{origin}/mcp"


@asynccontextmanager
async def served(take: Callable[[web.Request], Any]) -> AsyncIterator[str]:
    """Serve every request by a function on a free port, and yield the origin."""
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def odd(request: web.Request, found: Any) -> web.StreamResponse | None:
    """Answer what is no ordinary result: nothing for ever, a packed body, or bytes of the wire; None: it is one."""
    if found is HANG:
        await asyncio.sleep(HANG_S)
    if isinstance(found, Packed):
        body = await asyncio.to_thread(found.body)
        return web.Response(body=body, headers={"Content-Encoding": found.encoding}, content_type="application/json")
    if isinstance(found, Wire):
        await _write(request, found)
        return web.Response()
    return None


async def _write(request: web.Request, wire: Wire) -> None:
    transport = request.transport
    assert isinstance(transport, asyncio.Transport)
    for piece in wire.pieces():
        if transport.is_closing():
            break
        transport.write(piece)
        full = transport.get_write_buffer_size() > BUFFER_MAX_BYTES
        await asyncio.sleep(max(wire.pause_s, UNREAD_PAUSE_S if full else 0))
    transport.close()


def _json(message: dict[str, Any], result: Any) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})


def _initialized(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "raw", "version": "1"},
    }
