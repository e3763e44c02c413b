"""MCP servers whose answers have no end, or swell when they are unpacked."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from wayline.contracts.tools import ListTools, ToolList
from wayline.tool_registry.connection import server_transport

LIMIT_BYTES = 1024 * 1024
BUFFERED_MAX_BYTES = 16 * 1024 * 1024
"""More than the sockets between the two ends hold of what nobody has read."""
ENDLESS_BYTES = 128 * 1024 * 1024
"""Where an answer ends that is read to its end, so that a registry without a limit fails here and not the machine."""
PACKED_BYTES = 2 * LIMIT_BYTES
"""Of an answer before it is packed: enough, since what is packed is refused whatever it holds."""
TOOL = {"name": "act", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hostile", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}


@dataclass
class HostileServer:
    """A server that answers one method with more than can be held."""

    method: str
    packed: bool = False
    status: int = 200
    content_type: str = "application/json"
    sent_bytes: int = 0
    """Of its longest answer: a read is asked for again."""
    accepted: set[str] = field(default_factory=set)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def hear(self, request: web.Request) -> web.StreamResponse:
        self.accepted.add(request.headers.get("Accept-Encoding", ""))
        if request.method != "POST":
            return web.Response(status=405)
        body = await request.json()
        if "id" not in body:
            return web.Response(status=202)
        reply = {"jsonrpc": "2.0", "id": body["id"]}
        if body["method"] not in RESULTS:
            return web.json_response({**reply, "error": {"code": -32601, "message": "no such method"}})
        reply["result"] = RESULTS[body["method"]]
        if body["method"] != self.method:
            return web.json_response(reply)
        return self._bomb(reply) if self.packed else await self._endless(request)

    def _bomb(self, reply: dict) -> web.Response:
        packed = gzip.compress(json.dumps(reply).encode() + b" " * PACKED_BYTES, compresslevel=1)
        return web.Response(body=packed, content_type=self.content_type, headers={"Content-Encoding": "gzip"})

    async def _endless(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(status=self.status, headers={"Content-Type": self.content_type})
        await answer.prepare(request)
        sent_bytes = 0
        try:
            while sent_bytes < ENDLESS_BYTES:
                await answer.write(b" " * 65_536)
                sent_bytes += 65_536
                self.sent_bytes = max(self.sent_bytes, sent_bytes)
        except ConnectionError:
            self.left.set()
        return answer


@asynccontextmanager
async def served(server: HostileServer) -> AsyncIterator[dict]:
    """Serve a hostile server, and yield its settings."""
    app = web.Application()
    app.router.add_route("*", "/mcp", server.hear)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield {"name": "hostile", "url": f"http://127.0.0.1:{runner.addresses[0][1]}/mcp", "effects": {"act": "read"}}
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    monkeypatch.setattr(server_transport, "MESSAGE_MAX_BYTES", LIMIT_BYTES)
    monkeypatch.setattr(server_transport, "IMAGES_BYTES", LIMIT_BYTES)


async def call_both(platform):
    """Call the hostile server and another one at the same time."""
    return await asyncio.gather(
        platform.call(platform.ask("hostile__act", timeout_s=20)),
        platform.call(platform.ask("effects__look_read", job="j2")),
    )


async def test_an_endless_answer_of_a_call_is_left_at_the_limit(platform):
    server = HostileServer("tools/call")
    async with served(server) as settings:
        await platform.registry(settings, platform.effects.settings(), result_max_bytes=1_000)

        refused, other = await call_both(platform)
        await asyncio.wait_for(server.left.wait(), 10)

    assert refused.error is not None
    assert f"more than {LIMIT_BYTES} bytes" in refused.error.message
    assert server.sent_bytes <= LIMIT_BYTES + BUFFERED_MAX_BYTES
    assert other.status == "success"


async def test_an_endless_failure_of_a_call_is_left_at_the_limit(platform):
    server = HostileServer("tools/call", status=500)
    async with served(server) as settings:
        await platform.registry(settings, platform.effects.settings(), result_max_bytes=1_000)

        refused, other = await call_both(platform)
        await asyncio.wait_for(server.left.wait(), 10)

    assert refused.status == "failed"
    assert server.sent_bytes <= LIMIT_BYTES + BUFFERED_MAX_BYTES
    assert other.status == "success"


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_a_compressed_answer_of_a_call_is_refused(platform, content_type):
    server = HostileServer("tools/call", packed=True, content_type=content_type)
    async with served(server) as settings:
        await platform.registry(settings, platform.effects.settings(), result_max_bytes=1_000)

        refused, other = await call_both(platform)

    assert refused.error is not None
    assert "compressed its answer" in refused.error.message
    assert other.status == "success"
    assert server.accepted == {"identity"}


@pytest.mark.parametrize(
    ("packed", "why"), [(False, f"more than {LIMIT_BYTES} bytes"), (True, "compressed its answer")]
)
async def test_an_endless_listing_makes_only_its_server_unavailable(platform, packed, why):
    server = HostileServer("tools/list", packed=packed)
    async with served(server) as settings:
        await platform.registry(settings, platform.effects.settings())
        if not packed:
            await asyncio.wait_for(server.left.wait(), 10)

        listed = await platform.bus.ask(ListTools(tenant=platform.tenant), ToolList)
        other = await platform.call(platform.ask("effects__look_read"))

    assert [one.name for one in listed.away] == ["hostile"]
    assert why in listed.away[0].why
    assert other.status == "success"
