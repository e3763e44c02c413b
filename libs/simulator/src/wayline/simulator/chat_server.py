"""A model provider for tests: speaks Chat Completions on a socket, streaming, and answers by a script."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web


@dataclass(frozen=True)
class Say:
    """One scripted reply."""

    text: str = ""
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()
    delay_s: float = 0.0
    status: int = 200
    cut: bool = False
    """End the stream before the message is whole."""
    hold: asyncio.Event | None = None
    """Stream the first word, then wait for this."""
    pace_s: float = 0.0
    """Between two words."""
    retry_after: str | None = None
    error: dict[str, Any] | None = None
    """What a refusal says; in an answer with status 200, said in the middle of its stream."""


Script = Callable[[dict[str, Any]], Say]
"""What to say to a request body."""


@dataclass
class ChatServer:
    """Serves `/v1/chat/completions` on a free loopback port."""

    script: Script
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Every request: its attempt id and its body."""
    aborted: int = 0
    """Streams whose reader went away."""

    async def __aenter__(self) -> ChatServer:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        self.calls.append((request.headers.get("X-Wayline-Attempt", ""), body))
        say = self.script(body)
        if say.delay_s:
            await asyncio.sleep(say.delay_s)
        if say.status != 200:
            error = say.error or {"message": "scripted", "code": say.status}
            headers = {"Retry-After": say.retry_after} if say.retry_after else {}
            return web.json_response({"error": error}, status=say.status, headers=headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await self._stream(response, say, body)
        except (asyncio.CancelledError, ConnectionError):
            self.aborted += 1
            raise
        return response

    async def _stream(self, response: web.StreamResponse, say: Say, body: dict[str, Any]) -> None:
        words = say.text.split(" ")
        for n, word in enumerate(words if say.text else ()):
            await response.write(_chunk({"content": word if n == 0 else f" {word}"}))
            if n == 0 and say.hold is not None:
                await say.hold.wait()
            if say.pace_s:
                await asyncio.sleep(say.pace_s)
        if say.error is not None:
            await response.write(_line({"error": say.error}))
            return
        for index, (name, arguments) in enumerate(say.tools):
            function = {"name": name, "arguments": orjson.dumps(arguments).decode()}
            call = {"index": index, "id": f"call_{next(_ids)}", "type": "function", "function": function}
            await response.write(_chunk({"tool_calls": [call]}))
        if say.cut:
            return
        prompt = len(orjson.dumps(body["messages"])) // 4
        usage = {"prompt_tokens": prompt, "completion_tokens": len(words), "total_tokens": prompt + len(words)}
        await response.write(_chunk({}, finish="tool_calls" if say.tools else "stop"))
        await response.write(_line({"choices": [], "usage": usage}) + b"data: [DONE]\n\n")


_ids = itertools.count(1)


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _line({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _line(value: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def turns(*says: Say) -> Script:
    """Make a script for one conversation: the n-th reply answers the n-th request after the user's message."""

    def script(body: dict[str, Any]) -> Say:
        answered = sum(message["role"] == "assistant" for message in body["messages"])
        return says[min(answered, len(says) - 1)]

    return script
