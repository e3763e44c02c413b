"""MCP servers that go away, come back, lie, or share a wire."""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64decode
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from wayline.contracts.tools import Effect, ListTools, ToolList
from wayline.embedded.ports import free_port
from wayline.testkit import until
from wayline.testkit.effects_server import IMPORTS
from wayline.testkit.fork_server import fork
from wayline.testkit.media import png
from wayline.testkit.plain_mcp import plain_program
from wayline.tool_registry.connection import mcp_sessions
from wayline.tool_registry.servers import mcp_server, reconnect_wait
from wayline.tool_registry.servers.mcp_server import McpServer

STDIO_SERVER = plain_program("""
import os
server = MCPServer("pipe")

@server.tool()
def pid() -> str:
    return str(os.getpid())

@server.tool()
def crash() -> str:
    os._exit(1)

@server.tool()
def nul() -> str:
    return "a\\x00b"

server.run()
""")
ONE_AT_A_TIME_SERVER = plain_program("""
import pathlib, time
server = MCPServer("busy")
here = pathlib.Path(__file__)

@server.tool()
def block() -> str:
    here.with_suffix(".begun").touch()
    while not here.with_suffix(".go").exists():
        time.sleep(0.01)
    return "done"

@server.tool()
def act() -> str:
    here.with_suffix(".acted").touch()
    return "done"

server.run()
""")
CAMERA_SERVER = plain_program("""
import base64, pathlib

class Camera(MCPServer):
    def answer(self, method, params):
        if method != "tools/call":
            return super().answer(method, params)
        data = base64.b64encode(pathlib.Path(__file__).with_suffix(".png").read_bytes()).decode()
        shown = {"type": "image", "data": data, "mimeType": "image/png"}
        return {"result": {"content": [{"type": "text", "text": "Here it is."}, shown]}}

server = Camera("camera")

@server.tool()
def shot():
    pass

server.run()
""")
BAD_SCHEMA_SERVER = plain_program("""
def described(name, **properties):
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}

class BadSchemas(MCPServer):
    def answer(self, method, params):
        if method == "tools/list":
            return {"result": {"tools": [
                described("good"), described("bad", a={"type": "strange"}),
                described("far", a={"$ref": "http://127.0.0.1:1/schema.json"}),
                described("vast", a={"type": "integer", "maximum": 2**256 - 1}),
            ]}}
        if method == "tools/call":
            meta = {"wayline/citations": [{"document": "d", "quote": "q"}]}
            return {"result": {"content": [{"type": "text", "text": "ok"}], "_meta": meta}}
        return super().answer(method, params)

BadSchemas("bad").run()
""")


def program(platform, name: str, text: str, **more) -> dict:
    """A server that is a program of the test's own."""
    file = platform.tmp_path / f"{name}.py"
    file.write_text(text)
    return {"name": name, "command": sys.executable, "args": [str(file)], **more}


async def connected(platform, *names: str) -> None:
    async def are_listed() -> bool:
        listed = await platform.bus.ask(ListTools(tenant=platform.tenant), ToolList)
        return set(names) <= {tool.server for tool in listed.tools}

    await until(are_listed, why=f"{names} are connected")


async def test_a_server_that_is_down_fails_only_its_tools(platform):
    down = {"name": "down", "url": "http://127.0.0.1:9/mcp"}
    await platform.registry(down, platform.effects.settings())

    gone, fine = await asyncio.gather(
        platform.call(platform.ask("down__thing")), platform.call(platform.ask("effects__pay_once", job="j2"))
    )

    assert gone.error is not None
    assert (gone.error.code, fine.status) == ("unavailable", "success")


async def test_a_server_that_is_down_is_named_beside_the_tools(platform):
    await platform.registry({"name": "down", "url": "http://127.0.0.1:9/mcp"}, platform.effects.settings())

    listed = await platform.bus.ask(ListTools(tenant=platform.tenant), ToolList)

    assert [server.name for server in listed.away] == ["down"]
    assert listed.away[0].why


async def test_a_server_that_crashed_and_came_back_is_used_again(platform):
    server = await platform.server()
    await platform.registry(server.settings())
    assert (await platform.call(platform.ask("effects__look_read", job="j1"))).status == "success"

    server.kill()
    gone = await platform.call(platform.ask("effects__pay_once", job="j2"))
    await server.start()

    async def works_again() -> bool:
        reply = await platform.call(platform.ask("effects__pay_once", job=f"j{len(tries)}"))
        tries.append(reply)
        return reply.status == "success"

    tries = [gone, gone, gone]
    await until(works_again, why="the server is connected again")
    assert gone.error is not None
    assert gone.error.code == "unavailable"
    assert "effects__pay_once" not in {reply.status for reply in tries}


async def test_a_call_has_an_away_server_tried_at_once(platform, monkeypatch):
    monkeypatch.setattr(reconnect_wait, "FIRST_S", 600)
    server = await platform.server()
    server.kill()
    await platform.registry(server.settings(), reconnect_wait_max_s=600, available_within_s=60)

    async def is_away() -> bool:
        listed = await platform.bus.ask(ListTools(tenant=platform.tenant), ToolList)
        return [away.name for away in listed.away] == ["effects"]

    await until(is_away, why="the server was tried and is away")
    await server.start()

    reply = await platform.call(platform.ask("effects__look_read"))

    assert reply.status == "success"


async def test_a_call_that_comes_during_a_failing_try_has_another(platform, monkeypatch):
    monkeypatch.setattr(reconnect_wait, "FIRST_S", 600)
    server = await platform.server()
    server.kill()
    tries, waits, ready = asyncio.Queue[asyncio.StreamWriter](), asyncio.Event(), McpServer.ready

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await tries.put(writer)

    async def wait_for_it(one: McpServer, within_s: float) -> bool:
        waits.set()
        return await ready(one, within_s)

    monkeypatch.setattr(McpServer, "ready", wait_for_it)
    silent = await asyncio.start_server(hold, "127.0.0.1", server.port)
    await platform.registry(server.settings(), reconnect_wait_max_s=600, available_within_s=60)
    trying = await asyncio.wait_for(tries.get(), 60)
    calling = asyncio.create_task(platform.call(platform.ask("effects__look_read")))
    await asyncio.wait_for(waits.wait(), 60)
    silent.close()
    trying.close()
    await server.start()

    assert (await calling).status == "success"


async def test_a_once_call_whose_server_dies_under_it_is_unknown(platform):
    slow = await platform.server(delay_ms=30_000)
    await platform.registry(slow.settings())
    ask = platform.ask("effects__pay_once")
    calling = asyncio.create_task(platform.call(ask))
    await until(lambda: slow.has_begun("pay_once", ask.key), why="the call has reached the server")

    slow.kill()

    assert (await calling).status == "unknown"


async def test_a_server_on_a_pipe_is_started_again_after_a_crash(platform):
    await platform.registry(program(platform, "pipe", STDIO_SERVER))
    await connected(platform, "pipe")
    first = await platform.call(platform.ask("pipe__pid", job="j1"))

    crashed = await platform.call(platform.ask("pipe__crash", job="j2"))
    await connected(platform, "pipe")
    replies = []

    async def answers() -> bool:
        replies.append(await platform.call(platform.ask("pipe__pid", job=f"again-{len(replies)}")))
        return replies[-1].status == "success"

    await until(answers, why="the program runs again")
    assert (first.status, crashed.status) == ("success", "unknown")
    assert {reply.status for reply in replies} <= {"failed", "success"}
    assert replies[-1].content != first.content


async def test_a_result_with_a_nul_character_is_stored_and_given_again(platform):
    await platform.registry(program(platform, "pipe", STDIO_SERVER))
    await connected(platform, "pipe")
    ask = platform.ask("pipe__nul")

    replies = [await platform.call(ask), await platform.call(ask)]

    assert [(reply.content, reply.repeated) for reply in replies] == [("a\0b", False), ("a\0b", True)]


async def test_an_undeclared_servers_effects_are_once_and_citations_ignored(platform):
    await platform.registry(program(platform, "bad", BAD_SCHEMA_SERVER))
    await connected(platform, "bad")
    listed = await platform.bus.ask(ListTools(tenant=platform.tenant, patterns=("bad__*",)), ToolList)

    reply = await platform.call(platform.ask("bad__good"))
    far = await platform.call(platform.ask("bad__far", {"a": 1}, job="j2"))

    assert [(tool.name, tool.effect) for tool in listed.tools] == [
        ("bad__far", Effect.ONCE),
        ("bad__good", Effect.ONCE),
    ]
    assert (reply.status, reply.citations) == ("success", ())
    # What its schema says elsewhere is not fetched: the server checks that itself.
    assert (far.status, far.content) == ("success", "ok")


async def test_a_broken_connection_harms_only_the_call_on_it(platform):
    async with flaky_wire(platform.effects.port, breaks_on=b"poison") as port:
        server = {**platform.effects.settings(), "url": f"http://127.0.0.1:{port}/mcp"}
        await platform.registry(server)
        await connected(platform, "effects")

        fine, broken = await asyncio.gather(
            platform.call(platform.ask("effects__pay_once", job="fine")),
            platform.call(platform.ask("effects__pay_once", job="poison")),
        )

    assert (fine.status, broken.status) == ("success", "unknown")


@pytest.mark.parametrize("size", [100, 1_000_000])
async def test_an_effect_whose_answer_is_too_long_has_acted(platform, size):
    text = STDIO_SERVER.replace('return "a\\x00b"', f'return "x" * {size}')
    await platform.registry(program(platform, "pipe", text), result_max_bytes=1_000)
    await connected(platform, "pipe")

    reply = await platform.call(platform.ask("pipe__nul"))

    assert (reply.status, "above the limit of 1000" in reply.content) == ("success", size > 1_000)


async def test_an_image_is_kept_byte_for_byte_in_the_ledger(platform):
    content = png(640, 480).ljust(100_000, b"\xa5")
    await platform.registry(program(platform, "camera", CAMERA_SERVER))
    (platform.tmp_path / "camera.png").write_bytes(content)
    await connected(platform, "camera")

    replies = [await platform.call(platform.ask("camera__shot")) for _ in range(2)]

    for reply in replies:
        assert (reply.status, reply.content) == ("success", "Here it is.\n[image image/png, 640x480]")
        [image] = reply.images
        assert (b64decode(image.content_base64), image.size_bytes) == (content, len(content))
    assert [reply.repeated for reply in replies] == [False, True]


async def test_a_server_busy_with_a_call_is_not_disconnected(platform, monkeypatch):
    begun, probed, learn = platform.tmp_path / "busy.begun", asyncio.Event(), McpServer._learn
    learned: list[str] = []

    async def unanswered(self, client) -> None:
        if self.name not in learned:
            learned.append(self.name)
            return await learn(self, client)
        # A question that came before the call would be answered, or keep the next one from being asked.
        await until(begun.exists, why="the server is busy")
        probed.set()
        raise TimeoutError

    monkeypatch.setattr(McpServer, "_learn", unanswered)
    await platform.registry(program(platform, "busy", ONE_AT_A_TIME_SERVER), probe_every_s=0.05)
    await connected(platform, "busy")

    calling = asyncio.create_task(platform.call(platform.ask("busy__block")))
    await until(probed.is_set, why="the busy server is asked for its tools")
    (platform.tmp_path / "busy.go").touch()

    assert (await calling).content == "done"


async def test_a_call_unsent_to_a_busy_server_failed(platform, monkeypatch):
    monkeypatch.setattr(mcp_server, "OVERTIME_S", 0.1)
    busy = program(platform, "busy", ONE_AT_A_TIME_SERVER, tools={"act": {"timeout_s": 0.3}})
    await platform.registry(busy)
    await connected(platform, "busy")
    blocked = asyncio.create_task(platform.call(platform.ask("busy__block", job="j1")))
    await until((platform.tmp_path / "busy.begun").exists, why="the server is busy")

    act = await platform.call(platform.ask("busy__act", job="j2"))
    (platform.tmp_path / "busy.go").touch()

    assert (await blocked).status == "success"
    assert (act.status, act.error.code if act.error else None) == ("failed", "unavailable")
    assert not (platform.tmp_path / "busy.acted").exists()


async def test_a_streamed_answer_of_megabytes_has_acted(platform):
    async with old_server(OldServer(answer="x" * 3_000_000)) as url:
        await platform.registry({"name": "old", "url": url}, result_max_bytes=1_000)
        await connected(platform, "old")

        reply = await platform.call(platform.ask("old__act"))

    assert reply.status == "success"
    assert "3000000 bytes are above the limit of 1000" in reply.content


async def test_a_hanging_server_is_left_without_its_farewell(platform, monkeypatch):
    # Long enough for the farewell to be sent by a busy machine.
    monkeypatch.setattr(mcp_sessions, "LEAVE_S", 2.0)
    old = OldServer()
    async with old_server(old) as url:
        await platform.registry({"name": "old", "url": url}, connect_timeout_s=1, probe_every_s=0.05)
        await connected(platform, "old")
        old.hangs = True
        await until(old.left.is_set, why="the registry leaves")
        old.hangs, before = False, old.sessions

        await until(lambda: old.sessions > before, why="the registry comes back")
        await connected(platform, "old")

        assert (await platform.call(platform.ask("old__act"))).status == "success"


async def test_a_servers_headers_are_sent_but_never_logged(platform, caplog, capfd):
    old, secret = OldServer(key="s3cret-of-the-server"), "s3cret-of-the-server"
    async with old_server(old) as url:
        settings = {"name": "old", "url": url, "headers": {"X-Api-Key": secret}, "effects": {"act": "once"}}
        registry = await platform.registry(settings)
        await connected(platform, "old")
        called = await platform.call(platform.ask("old__act"))
        old.key = "another"
        refused = await platform.call(platform.ask("old__act", step=2))

    assert called.status == "success"
    assert old.refused > 0 and refused.status != "success"
    texts = [
        capfd.readouterr().out,
        caplog.text,
        repr(refused),
        *(f"{span.attributes} {span.events}" for span in registry.spans.get_finished_spans()),
    ]
    assert not any(secret in text for text in texts)


class OldServer:
    """A server as they were before 2026: it has sessions, streams its answers, and never answers a farewell."""

    def __init__(self, *, answer: str = "ok", key: str | None = None) -> None:
        self.key = key
        """Wanted as a header with every request, where there is one."""
        self.refused = 0
        self.sessions = 0
        self.hangs = False
        self.left = asyncio.Event()
        tool = {"name": "act", "inputSchema": {"type": "object"}}
        about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
        self._results = {
            "initialize": {**about, "serverInfo": {"name": "old", "version": "1"}},
            "tools/list": {"tools": [tool]},
            "tools/call": {"content": [{"type": "text", "text": answer}]},
        }

    async def hear(self, request: web.Request) -> web.Response:
        if self.key and request.headers.get("X-Api-Key") != self.key:
            self.refused += 1
            return web.Response(status=401)
        if request.method == "DELETE":
            self.left.set()
            await asyncio.Event().wait()
        if request.method != "POST":
            return web.Response(status=405)
        body = await request.json()
        if "id" not in body:
            return web.Response(status=202)
        if self.hangs:
            await asyncio.Event().wait()
        self.sessions += body["method"] == "initialize"
        reply = {"jsonrpc": "2.0", "id": body["id"]}
        if result := self._results.get(body["method"]):
            reply["result"] = result
        else:
            reply["error"] = {"code": -32601, "message": "no such method"}
        text = f"event: message\ndata: {json.dumps(reply)}\n\n"
        return web.Response(text=text, content_type="text/event-stream", headers={"mcp-session-id": "s"})


@asynccontextmanager
async def old_server(old: OldServer):
    app = web.Application()
    app.router.add_route("*", "/mcp", old.hear)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def flaky_wire(port: int, *, breaks_on: bytes):
    """A wire to a server that breaks a connection over which certain bytes come."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65_536):
                if breaks_on in data:
                    break
                sink.write(data)

        pumps = {asyncio.create_task(pump(reader, far_writer)), asyncio.create_task(pump(far_reader, writer))}
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for task in pumps:
            task.cancel()
        writer.transport.abort()
        far_writer.transport.abort()

    wire = await asyncio.start_server(carry, "127.0.0.1", 0)
    try:
        yield wire.sockets[0].getsockname()[1]
    finally:
        wire.close()


SSE_SERVER = """
from mcp.server import MCPServer
server = MCPServer("old")

@server.tool(structured_output=False)
async def add(a: int, b: int) -> str:
    return str(a + b)

server.run("sse", port={port})
"""


async def test_a_server_over_the_older_http_transport_is_called(platform, tmp_path):
    file, port = tmp_path / "sse_server.py", free_port()
    file.write_text(SSE_SERVER.format(port=port))
    server = await asyncio.to_thread(fork, "runpy:run_path", str(file), imports=IMPORTS, log=tmp_path / "sse.log")
    try:
        await platform.registry({"name": "old", "url": f"http://127.0.0.1:{port}/sse", "sse": True})
        # Beside the tools that are always there: it listens some time after it has begun.
        await connected(platform, "old")

        read = await platform.call(platform.ask("old__add", {"a": 2, "b": 3}))
        await server.kill()
        gone = await platform.call(platform.ask("old__add", {"a": 2, "b": 3}, job="j2"))
    finally:
        await server.kill()

    assert (read.status, read.content) == ("success", "5")
    assert gone.status == "failed"
