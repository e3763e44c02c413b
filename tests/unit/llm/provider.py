"""A provider on a loopback socket that says exactly the bytes it is told, and notices who hangs up."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from aiohttp import web

from wayline.llm import Finished, Model, ModelError, ModelRequest, Piece, TextDelta

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {each['type']}\ndata: ".encode() + orjson.dumps(each) + b"\n\n" for each in events)


def in_pieces(body: bytes, *, seed: int, most: int = 60) -> list[bytes]:
    chance = random.Random(seed)
    edges = sorted({0, len(body), *(chance.randrange(len(body)) for _ in range(chance.randrange(1, most)))})
    return [body[start:end] for start, end in itertools.pairwise(edges)]


def spoken(pieces: Iterable[Piece]) -> tuple[str, list[Piece]]:
    """All text, and what else came: how the text was cut says nothing."""
    told = list(pieces)
    texts = "".join(piece.text for piece in told if isinstance(piece, TextDelta))
    return texts, [piece for piece in told if not isinstance(piece, TextDelta)]


@dataclass
class Reply:
    pieces: Iterable[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(EVENT_STREAM))
    drop: bool = False
    """Cut the connection instead of ending the answer."""
    hold: bool = False
    """Say nothing more, until the other side hangs up."""
    deaf: bool = False
    """Cut the connection before answering at all."""


class Provider:
    """Serves any POST with the next reply, or with the one made for its body; keeps what it was asked."""

    def __init__(self, *replies: Reply | Callable[[dict[str, Any]], Awaitable[Reply]]) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.connections: set[int] = set()
        self.hung_up = asyncio.Event()

    async def __aenter__(self) -> Provider:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        headers = {key.lower(): value for key, value in request.headers.items()}
        body = orjson.loads(await request.read())
        self.asked.append((request.path, headers, body))
        assert request.transport is not None
        self.connections.add(id(request.transport))
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if callable(reply):
            reply = await reply(body)
        if reply.deaf:
            request.transport.abort()
            return web.Response()
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        await response.prepare(request)
        for piece in reply.pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        if reply.drop:
            request.transport.close()
        if reply.hold:
            try:
                await asyncio.Event().wait()
            finally:
                self.hung_up.set()
        await response.write_eof()
        return response


@dataclass(frozen=True)
class Caller:
    """An adapter that asks one thing of a provider."""

    adapter: Callable[..., Model]
    request: ModelRequest

    async def stream(self, provider: Provider, **more: Any) -> list[Piece]:
        """All that the adapter makes of the provider's next reply."""
        model = self.adapter(provider.url, **more)
        try:
            return [piece async for piece in model.stream(self.request)]
        finally:
            await model.close()

    async def replied(self, *events: dict[str, Any]) -> Finished:
        """What it makes of a whole stream of events."""
        async with Provider(Reply([sse(*events)])) as provider:
            *_, last = await self.stream(provider)
        assert isinstance(last, Finished)
        return last

    async def failed(self, *replies: Reply, **more: Any) -> tuple[ModelError, Provider]:
        """The error it ends with, and the provider that caused it."""
        async with Provider(*replies) as provider:
            with pytest.raises(ModelError) as caught:
                await self.stream(provider, **more)
        return caught.value, provider
