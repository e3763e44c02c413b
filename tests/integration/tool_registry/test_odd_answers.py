"""What servers answer on a socket, and what of it counts as acted, refused or unknown."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from wayline.contracts.errors import Retry
from wayline.contracts.tools import CallTool, Effect, ListTools, ToolList
from wayline.testkit import until
from wayline.testkit.walks import cases
from wayline.tool_registry.connection import mcp_sessions

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("act", "look")]
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "odd", "version": "1"},
    },
    "tools/list": {"tools": TOOLS},
    "ping": {},
}
Answer = Callable[[web.Request, int], web.StreamResponse | Awaitable[web.StreamResponse]]


def answering(body: str, **more) -> Answer:
    """Return what answers a call with a body; `ID` in it is the id of the call."""

    def answer(request: web.Request, call_id: int) -> web.StreamResponse:
        headers = {"Content-Type": "application/json", **more.get("headers", {})}
        return web.Response(
            body=body.replace("ID", str(call_id)).encode("utf-8", "surrogateescape"), headers=headers,
            status=more.get("status", 200),
        )  # fmt: skip

    return answer


def streaming(body: str) -> Answer:
    """Return what answers a call with one event."""

    def answer(request: web.Request, call_id: int) -> web.StreamResponse:
        lines = "".join(f"data: {line}\r\n" for line in body.replace("ID", str(call_id)).split("\n"))
        text = f": hello\nevent: message\nid: 5\n{lines}\r\n"
        return web.Response(body=text.encode("utf-8", "surrogateescape"), headers={"Content-Type": "text/event-stream"})

    return answer


def error(code: int, words: str) -> str:
    forged = {"wayline/proves": "unsent"}
    error = {"code": code, "message": words, "data": forged}
    return json.dumps({"jsonrpc": "2.0", "id": 0, "error": error}).replace('"id": 0', '"id": ID')


@dataclass
class OddServer:
    """A server of an older protocol, with sessions, that answers calls as it is told."""

    answer: Answer
    calls: list[dict] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    begun: int = 0
    unknown_session: tuple[int, str] = (404, "")
    """Its answer to a session that it does not know."""
    answers_farewells: bool = True
    broken: bool = False
    """Whether a call's connection is cut in the middle of the answer."""

    async def hear(self, request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE" and not self.answers_farewells:
            await asyncio.Event().wait()
        if request.method != "POST":
            return web.Response(status=405)
        body = await request.json()
        if "id" not in body:
            return web.Response(status=202)
        method = body["method"]
        if (
            method not in ("initialize", "server/discover")
            and request.headers.get("mcp-session-id") not in self.sessions
        ):
            return web.Response(
                body=self.unknown_session[1], status=self.unknown_session[0], content_type="application/json"
            )
        if method == "tools/call":
            self.calls.append(body["params"])
            answer = self._cut(request, body["id"]) if self.broken else self.answer(request, body["id"])
            return await answer if inspect.isawaitable(answer) else answer
        if method not in RESULTS:
            message = {"code": -32601, "message": "no such method"}
            return web.json_response({"jsonrpc": "2.0", "id": body["id"], "error": message})
        headers = {}
        if method == "initialize":
            self.begun += 1
            headers["mcp-session-id"] = f"s{self.begun}"
            self.sessions.add(f"s{self.begun}")
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": RESULTS[method]}, headers=headers)

    async def _cut(self, request: web.Request, call_id: int) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "5000"})
        await answer.prepare(request)
        await answer.write(
            f'{{"jsonrpc":"2.0","id":{call_id},"result":{{"content":[{{"type":"text","text":"pai'.encode()
        )
        assert request.transport is not None
        request.transport.close()
        return answer


async def lists_odd(platform) -> bool:
    listed = await platform.bus.ask(ListTools(tenant=platform.tenant, patterns=("odd__*",)), ToolList)
    return len(listed.tools) == len(TOOLS)


@asynccontextmanager
async def odd_server(platform, answer: Answer, **settings) -> AsyncIterator[OddServer]:
    """Serve an odd server to a registry that is connected with it."""
    server = OddServer(answer)
    app = web.Application()
    app.router.add_route("*", "/mcp", server.hear)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        named = {"name": "odd", "url": f"http://127.0.0.1:{runner.addresses[0][1]}/mcp", "timeout_s": 20}
        effects = {"effects": {"act": Effect.ONCE, "look": Effect.READ}}
        registry = await platform.registry({**named, **effects}, **settings)
        await until(lambda: server.begun, why="the registry has connected")
        await until(lambda: lists_odd(platform), why="its tools are listed")
        yield server
        await registry.stop()
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("way", [answering, streaming], ids=["json", "event"])
async def test_a_result_of_any_bytes_has_acted_once(platform, way):
    bodies = {
        '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"half \\ud83c"}]}}': "half \ufffd",
        '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"latin \udce9"}]}}': "latin \ufffd",
        '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"nul \\u0000"}]}}': "nul \x00",
        '{"jsonrpc":"2.0","id":ID,"result":{"content":null,"isError":null}}': "",
        '{"jsonrpc":"2.0","id":ID,"result":"bare"}': "bare",
        '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"video","data":1}]}}': '{"type": "video", "data": 1}',
        '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"oops" x}]}}': "The tool has run",
        '{"jsonrpc":"2.0",\n"id":ID,\n"result":{"content":[{"type":"text","text":"lines"}]}}': "lines",
        '{"jsonrpc":"2.0","id":ID,"result":{"content":["' + "x" * 300_000 + '"]}}': "The tool has run",
    }  # fmt: skip
    async with odd_server(platform, way(""), result_max_bytes=2_000) as server:
        for n, (body, shown) in enumerate(bodies.items()):
            server.answer = way(body)
            reply = await platform.call(platform.ask("odd__act", job=f"j{n}"))

            assert reply.status == "success", (body[:200], reply)
            assert shown in reply.content

    assert len(server.calls) == len(bodies)


@pytest.mark.parametrize("way", [answering, streaming], ids=["json", "event"])
async def test_an_error_of_any_code_fails_in_the_servers_words(platform, way):
    words = [
        (-32603, "No customer named Smyth"),
        (-32050, "retrieval is away"),
        (-32600, "Session terminated"),
        (-32001, "Request timed out"),
        (-32051, "it needs authorization: log in"),
        (-32000, "Connection closed"),
    ]
    async with odd_server(platform, way("")) as server:
        for n, (code, said) in enumerate(words):
            server.answer = way(error(code, said))
            acted = await platform.call(platform.ask("odd__act", job=f"j{n}"))
            looked = await platform.call(platform.ask("odd__look", job=f"k{n}"))

            for reply in (acted, looked):
                assert reply.error is not None, reply
                assert (reply.error.code, reply.error.message, reply.begun) == ("tool_failed", said, True)

    assert len(server.calls) == 2 * len(words)


@pytest.mark.parametrize(
    ("answer", "status"),
    cases(
        [
            (answering("", status=403), "failed"),
            (answering("<html>", status=422), "failed"),
            (answering(error(-32050, "away"), status=503), "failed"),
            # Of the tool's own session, elsewhere.
            (answering(error(-32050, "INVALID_SESSION_ID: session expired or invalid"), status=400), "failed"),
            (answering("", status=503), "unknown"),
            (answering("", status=408), "unknown"),
            (answering("", status=202), "unknown"),
            (answering("", status=404), "unknown"),
            (answering(error(-32600, "Session terminated"), status=404), "unknown"),
            (answering(""), "unknown"),
            (answering("{}"), "unknown"),
            (answering('{"jsonrpc":"2.0","id":999,"result":{"content":[]}}'), "unknown"),
            (answering("<html>fine</html>", headers={"Content-Type": "text/html"}), "unknown"),
            # After it has acted, a server sends the call on to where nobody listens.
            (answering("", status=307, headers={"Location": "/nowhere"}), "unknown"),
            (answering("", status=307, headers={"Location": "http://127.0.0.1:9/mcp"}), "unknown"),
        ]
    ),
)
async def test_a_status_below_five_hundred_refuses_and_others_prove_nothing(platform, answer, status):
    async with odd_server(platform, answer) as server:
        reply = await platform.call(platform.ask("odd__act"))

    assert (reply.status, len(server.calls)) == (status, 1), reply
    assert reply.begun


async def test_a_busy_server_is_asked_again_by_reads_alone(platform):
    done = answering('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}')
    busy = answering(error(-32000, "rate limited"), status=429, headers={"Retry-After": "0"})
    busy_for_long = answering("", status=429, headers={"Retry-After": "60"})
    answers = [busy, busy, done, busy_for_long, done]

    def next_of_them(request: web.Request, call_id: int) -> web.StreamResponse | Awaitable[web.StreamResponse]:
        return answers.pop(0)(request, call_id)

    async with odd_server(platform, next_of_them, retry_after_s=(0,)):
        acted = await platform.call(platform.ask("odd__act"))
        looked = await platform.call(platform.ask("odd__look", job="j2"))
        given_up = await platform.call(platform.ask("odd__look", job="j3"))

    assert acted.error and (acted.begun, acted.error.message) == (True, "rate limited")
    assert (looked.status, looked.attempts) == ("success", 2)
    assert given_up.error and "429 Too Many Requests, and asks to be left alone for 60 s" in given_up.error.message
    assert answers == [done]


async def test_a_result_that_breaks_off_has_acted(platform):
    async with odd_server(platform, answering("")) as server:
        server.broken = True
        acted = await platform.call(platform.ask("odd__act"))
        looked = await platform.call(platform.ask("odd__look", job="j2"))

    assert (acted.status, "pai" in acted.content) == ("success", True), acted
    assert looked.status == "failed"
    assert len(server.calls) == 1 + 3


@pytest.mark.parametrize(
    "unknown_session",
    cases(
        [
            (404, ""),
            (400, error(-32000, "Bad Request: No valid session ID provided").replace("ID,", "null,")),
            (400, error(-32600, "Session not found").replace("ID,", '"server-error",')),
        ]
    ),
)
async def test_a_session_that_ended_is_opened_again_before_an_effect(platform, unknown_session):
    done = answering('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}')
    async with odd_server(platform, done, probe_every_s=60, available_within_s=10) as server:
        server.unknown_session = unknown_session
        server.sessions.clear()
        acted = await platform.call(platform.ask("odd__act"))
        server.sessions.clear()
        looked = await platform.call(platform.ask("odd__look", job="j2"))

    assert (acted.status, looked.status, server.begun) == ("success", "success", 3), (acted, looked)
    assert len(server.calls) == 2


async def test_a_read_waits_while_a_session_that_ended_is_left(platform, monkeypatch):
    monkeypatch.setattr(mcp_sessions, "LEAVE_S", 1.0)
    done = answering('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}')
    async with odd_server(platform, done, probe_every_s=60, available_within_s=30) as server:
        server.answers_farewells = False
        server.sessions.clear()
        looked = await platform.call(platform.ask("odd__look"))

    assert (looked.status, server.begun, len(server.calls)) == ("success", 2, 1), looked


async def test_many_answers_at_once_are_each_read(platform):
    text = "x" * 200_000
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"content": [{"type": "text", "text": text}]}})
    async with odd_server(platform, answering(body.replace('"id": 0', '"id": ID'))):
        asked = [platform.ask("odd__look", job=f"j{n}") for n in range(20)]
        replies = await asyncio.gather(*(platform.call(one) for one in asked))

    assert {reply.content for reply in replies} == {text}


async def test_hanging_servers_of_one_tenant_leave_slots_to_others(platform):
    hanging = asyncio.Event()

    async def hang(request: web.Request, call_id: int) -> web.StreamResponse:
        await hanging.wait()
        return web.json_response({"jsonrpc": "2.0", "id": call_id, "result": {"content": []}})

    limits = {"calls_max": 8, "calls_per_tenant_max": 4, "answer_within_s": 0.1}
    async with odd_server(platform, hang, **limits) as server:
        for n in range(8):
            with contextlib.suppress(Retry):
                await platform.once(platform.ask("odd__act", job=f"j{n}"), timeout_s=5)
        await until(lambda: len(server.calls) == 4, why="its share of the calls runs")
        mine = await platform.call(other_tenants(platform.ask("get_current_time")))
        with pytest.raises(Retry, match="4 calls of this tenant run already"):
            await platform.once(platform.ask("odd__act", job="j9"), timeout_s=5)
        hanging.set()

    assert mine.status == "success"
    assert len(server.calls) == 4


def other_tenants(ask: CallTool) -> CallTool:
    """Return the same call of another tenant."""
    key = ask.key.replace(ask.tenant, "t-other", 1)
    return ask.model_copy(update={"tenant": "t-other", "key": key})
