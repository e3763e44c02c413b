"""A provider's SDK, for what it is good at (keys, headers, connections); the bytes both ways are ours.

Its typed calls are passed by: they refuse answers that providers do send, and walk through every request.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Protocol

import aiohttp
import httpx2

from wayline.contracts.money import Usage
from wayline.llm.characters import Joiner
from wayline.llm.model import ATTEMPT_HEADER, Finished, ModelError, ModelRequest, Piece, TextDelta, UsageSeen
from wayline.llm.transport import provider_errors
from wayline.llm.transport.connection_errors import from_transport
from wayline.llm.transport.encoding import encoded
from wayline.llm.transport.frames import (
    ANSWER_MAX_BYTES,
    BLANK_MAX_BYTES,
    ERROR_MAX_BYTES,
    EVENT_END,
    Frames,
    too_much,
)
from wayline.llm.transport.server_sent_events import (
    BYTE_ORDER_MARK,
    begins_object,
    events,
    json_object,
    last_events,
)

Json = dict[str, Any]

PLACEHOLDER_KEY = "none"
"""For local endpoints, which want none; the SDKs insist on something."""
CONNECTIONS_MAX = 1_024
CONNECT_MAX_S = 10.0
SILENCE_MAX_S = 300.0
"""How long a provider may say nothing, before or within a stream: models think, and not all of them ping."""
KEPT_ALIVE_S = 30.0
LOST = (httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError)
"""What the transport raises where a connection breaks."""
DRAIN_MAX_S = 1.0
"""How long to wait for the end of a stream whose message is whole: at its end the connection can be used again."""


class Reply(Protocol):
    """An answer being put together."""

    over: bool
    seen: Usage | None
    """What the provider has counted until now."""

    @property
    def whole(self) -> bool:
        """Return whether the message is whole, though the stream may not be over."""
        ...

    def take(self, event: Json) -> str:
        """Add an event, and return its part of the text. Raises ModelError for an error told inside."""
        ...

    def finished(self) -> Finished: ...


class Sdk(ABC):
    """Streams from `<base_url><path>`; no base URL is the provider's own.

    The client is made when it is first needed, or before (`warm`): its import takes seconds, so in a thread.
    """

    path: ClassVar[str]

    def __init__(
        self, base_url: str | None = None, *, api_key: str | None = None, silence_max_s: float = SILENCE_MAX_S
    ) -> None:
        self._settings = {
            "base_url": base_url,
            "api_key": api_key or PLACEHOLDER_KEY,
            # Retrying is a policy of ours.
            "max_retries": 0,
            "timeout": httpx2.Timeout(silence_max_s, connect=CONNECT_MAX_S, pool=CONNECT_MAX_S),
        }
        self._client: Any = None
        self._made = asyncio.Lock()

    @abstractmethod
    def client(self, settings: Json, http: Json) -> Any:
        """Make the SDK's client on its aiohttp transport, each with its settings; imports the SDK."""

    @abstractmethod
    def build_body(self, request: ModelRequest) -> tuple[Json, tuple[str, ...]]:
        """Return the body, and a note for everything that is not sent as configured."""

    @abstractmethod
    def reply(self, request: ModelRequest) -> Reply: ...

    def learn_from_refusal(self, body: Json, refusal: ModelError) -> bool:
        """Remember what this account never accepts; return whether the request is built differently now."""
        return False

    def events_of(self, body: Json) -> list[Json]:
        """Turn an answer in one piece into events, where a stream was not to be had."""
        return [body]

    async def warm(self) -> None:
        """Make the client, unless it is made."""
        async with self._made:
            self._client = self._client or await asyncio.to_thread(self._make)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Yield the provider's answer, piece by piece. Raises ModelError."""
        reply = self.reply(request)
        response, notes = await self._begin(request)
        chunks, halves = response.aiter_bytes(), Joiner()
        begun = b""
        try:
            begun = await _begun(chunks)
            async with aclosing(self._events(begun, chunks)) as batches:
                async for batch in batches:
                    for piece in _pieces(reply, batch, halves):
                        yield piece
                    if reply.over:
                        await _drain(chunks)
                        break
        except LOST as error:
            # What was lost after the whole message was not needed, and its final count is known.
            if not reply.whole:
                raise from_transport(error, answering=True) from error
        except provider_errors.MALFORMED as error:
            if not reply.whole:
                raise provider_errors.malformed(error) from error
        finally:
            await response.aclose()
        finished = _finished(reply, begun)
        if rest := halves.rest():
            yield TextDelta(rest)
        yield replace(finished, notes=notes)

    async def _events(self, begun: bytes, chunks: AsyncIterator[bytes]) -> AsyncGenerator[Iterable[Json | None]]:
        """Yield the events of an answer that came together, by what it begins with: some servers never stream."""
        if begins_object(begun):
            yield self.events_of(await _whole(begun, chunks))
            return
        frames = Frames(EVENT_END)
        yield chain.from_iterable(map(events, frames.feed(begun.removeprefix(BYTE_ORDER_MARK))))
        async for chunk in chunks:
            yield chain.from_iterable(map(events, frames.feed(chunk)))
        yield last_events(frames.rest)

    async def _begin(self, request: ModelRequest) -> tuple[httpx2.Response, tuple[str, ...]]:
        """Begin an answer; return it with what was not sent as asked for."""
        # Its body is not kept: it may be large, and models take their time.
        body, notes = self.build_body(request)
        try:
            return await self._answer(body, request.attempt_id), notes
        except ModelError as refusal:
            # Refused outright, so nothing is billed.
            if not self.learn_from_refusal(body, refusal):
                raise
        body, notes = self.build_body(request)
        return await self._answer(body, request.attempt_id), notes

    async def _answer(self, body: Json, attempt_id: str) -> httpx2.Response:
        await self.warm()
        try:
            return await self._client.post(
                self.path,
                cast_to=httpx2.Response,
                content=encoded(body),
                options={"headers": {ATTEMPT_HEADER: attempt_id, "Accept": "text/event-stream"}},
                stream=True,
                stream_cls=None,
            )
        except Exception as error:
            # Each SDK has its own errors for the same things; what they have in common is what tells them apart.
            response = getattr(error, "response", None)
            if isinstance(response, httpx2.Response):
                moved_to = "" if response.request.method == "POST" else str(response.url)
                raise provider_errors.from_response(
                    response.status_code, response.headers, response.text, moved_to=moved_to
                ) from error
            if isinstance(getattr(error, "request", None), httpx2.Request) or isinstance(error, aiohttp.ClientError):
                raise from_transport(error, answering=False) from error
            raise

    def _make(self) -> Any:
        limits = httpx2.Limits(max_connections=CONNECTIONS_MAX, keepalive_expiry=KEPT_ALIVE_S)
        return self.client(self._settings, {"limits": limits, "event_hooks": {"response": [_bound]}})


def _pieces(reply: Reply, events: Iterable[Json | None], halves: Joiner) -> Iterator[Piece]:
    """Yield the pieces of events that came together, their text as one; also those before an error."""
    counted, texts = reply.seen, list[str]()
    try:
        for each in events:
            if each:
                texts.append(reply.take(each))
            if reply.over:
                break
    finally:
        if reply.seen is not None and reply.seen is not counted:
            yield UsageSeen(reply.seen)
        if text := halves.add("".join(texts)):
            yield TextDelta(text)


def _finished(reply: Reply, begun: bytes) -> Finished:
    """Build the message, of which any part may be other than it should be."""
    try:
        return reply.finished()
    except ModelError as error:
        if told := provider_errors.told_instead(begun, error):
            raise provider_errors.no_answer(told) from error
        raise
    except provider_errors.MALFORMED as error:
        raise provider_errors.malformed(error) from error


async def _begun(chunks: AsyncIterator[bytes]) -> bytes:
    """Return the beginning of an answer, as far as it takes to know whether it is a stream or comes in one piece."""
    begun = b""
    async for chunk in chunks:
        begun += chunk
        if begun.strip() or len(begun) > BLANK_MAX_BYTES:
            break
    return begun


async def _whole(begun: bytes, chunks: AsyncIterator[bytes]) -> Json:
    """Read an answer that comes in one piece. Raises ModelError where it is longer than any, or cut."""
    body = bytearray(begun)
    async for chunk in chunks:
        body += chunk
        if len(body) > ANSWER_MAX_BYTES:
            raise too_much(ANSWER_MAX_BYTES)
    answer = json_object(bytes(body))
    if answer is None:
        raise provider_errors.stream_cut()
    return answer


async def _bound(response: httpx2.Response) -> None:
    """See that an SDK, which reads the whole body of an error, finds no more in it than anybody needs."""
    if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Beginning(response.stream)


class _Beginning(httpx2.AsyncByteStream):
    """The first bytes of a body."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        left = ERROR_MAX_BYTES
        async for chunk in self._stream:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError, httpx2.HTTPError, httpx2.StreamError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(DRAIN_MAX_S):
            async for _ in chunks:
                pass
