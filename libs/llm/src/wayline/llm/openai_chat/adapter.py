"""Stream answers from an endpoint that speaks Chat Completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

import aiohttp

from wayline.llm.characters import Joiner
from wayline.llm.model import ATTEMPT_HEADER, Finished, ModelError, ModelRequest, Piece, TextDelta, UsageSeen
from wayline.llm.openai_chat.reply import Reply
from wayline.llm.openai_chat.request import LimitName, build_body, limit_name
from wayline.llm.transport import frames, provider_errors
from wayline.llm.transport.encoding import encoded
from wayline.llm.transport.server_sent_events import BYTE_ORDER_MARK, begins_object

CONNECTIONS_MAX = 1_024
CONNECT_MAX_S = 10.0
SILENCE_MAX_S = 120.0
"""How long a provider may say nothing, before or within a stream."""
OTHER_LIMIT: dict[LimitName, LimitName] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}


class ChatCompletions:
    """Streams from `<base_url>/chat/completions`."""

    def __init__(self, base_url: str, *, api_key: str | None = None, silence_max_s: float = SILENCE_MAX_S) -> None:
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._headers = {"Authorization": f"Bearer {api_key or 'none'}", "Content-Type": "application/json"}
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_MAX_S, sock_read=silence_max_s)
        self._session: aiohttp.ClientSession | None = None
        self._limits: dict[str, LimitName] = {}
        """By model, where the endpoint has refused the usual name."""

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        """Yield the endpoint's answer, piece by piece. Raises ModelError."""
        reply, counted, answering, halves = Reply(), None, False, Joiner()
        notes: tuple[str, ...] = ()
        begun = b""
        try:
            response, notes = await self._ask(request)
            answering = True
            async with response:
                begun = await _begun(response)
                async for batch in _lines(response, begun):
                    for line in batch:
                        if (piece := reply.take_line(line)) and (text := halves.add(piece)):
                            yield TextDelta(text)
                    if reply.seen is not counted and not reply.stopped:
                        counted = reply.seen
                        assert counted is not None
                        yield UsageSeen(counted)
        except (aiohttp.ClientError, OSError) as error:
            # After the message has stopped only its usage can be lost: to ask again would pay for it twice.
            if not reply.stopped:
                raise _lost(error, answering=answering) from error
        except provider_errors.MALFORMED as error:
            if not reply.whole:
                raise provider_errors.malformed(error) from error
        finished = _finished(reply, request, notes, begun)
        if rest := halves.rest():
            yield TextDelta(rest)
        yield finished

    async def _ask(self, request: ModelRequest) -> tuple[aiohttp.ClientResponse, tuple[str, ...]]:
        """Return the unread answer, and notes on what was not sent as asked. Raises ModelError unless it is a 200."""
        limit = self._limits.get(request.model) or limit_name(request)
        response, notes = await self._post(request, limit)
        if response.status == 200:
            return response, notes
        refusal = await _refusal(response)
        if refusal.code != "invalid_request" or limit not in str(refusal):
            raise refusal
        # Refused outright, so nothing is billed, and this endpoint will not change its mind: ask by the other name.
        other = OTHER_LIMIT[limit]
        response, notes = await self._post(request, other)
        if response.status != 200:
            raise await _refusal(response)
        self._limits[request.model] = other
        return response, notes

    async def _post(self, request: ModelRequest, limit: LimitName) -> tuple[aiohttp.ClientResponse, tuple[str, ...]]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                timeout=self._timeout,
            )
        content, notes = build_body(request, limit=limit)
        data = encoded(content)
        # The bytes are enough for as long as the model takes to answer.
        del content
        return await self._session.post(self._url, data=data, headers={ATTEMPT_HEADER: request.attempt_id}), notes


def _finished(reply: Reply, request: ModelRequest, notes: tuple[str, ...], begun: bytes) -> Finished:
    """Build the message, of which any part may be other than it should be."""
    try:
        return reply.finished(provider=request.card.provider, model=request.model, notes=notes)
    except ModelError as error:
        if told := provider_errors.told_instead(begun, error):
            raise provider_errors.no_answer(told) from error
        raise
    except provider_errors.MALFORMED as error:
        raise provider_errors.malformed(error) from error


async def _refusal(response: aiohttp.ClientResponse) -> ModelError:
    async with response:
        return provider_errors.from_response(
            response.status,
            response.headers,
            await _beginning(response, frames.ERROR_MAX_BYTES),
            moved_to="" if response.method == "POST" else str(response.url),
        )


async def _begun(response: aiohttp.ClientResponse) -> bytes:
    """Return the beginning of an answer, as far as it takes to know whether it is a stream or comes in one piece."""
    begun = b""
    while not begun.strip() and len(begun) <= frames.BLANK_MAX_BYTES and (chunk := await response.content.readany()):
        begun += chunk
    return begun


def _lines(response: aiohttp.ClientResponse, begun: bytes) -> AsyncIterator[list[bytes]]:
    """Return the lines of an answer, by what it begins with: some endpoints never stream, whatever they call it."""
    return _whole(response, begun) if begins_object(begun) else _Lines(response.content, begun)


async def _whole(response: aiohttp.ClientResponse, begun: bytes) -> AsyncIterator[list[bytes]]:
    """Yield one whole body as the lines of a stream of one event."""
    body = begun + await _beginning(response, frames.ANSWER_MAX_BYTES + 1)
    if len(body) > frames.ANSWER_MAX_BYTES:
        raise frames.too_much(frames.ANSWER_MAX_BYTES)
    yield [b"data:" + body, b"data:[DONE]"]


class _Lines:
    """The lines of a stream, as many at a time as became whole together."""

    def __init__(self, content: aiohttp.StreamReader, begun: bytes) -> None:
        self._content = content
        self._begun = begun.removeprefix(BYTE_ORDER_MARK)
        self._frames = frames.Frames(frames.LINE_END)
        self._over = False

    # Not a generator: the event loop keeps a list of those, and each is closed once more.
    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> list[bytes]:
        if self._over:
            raise StopAsyncIteration
        chunk, self._begun = self._begun or await self._content.readany(), b""
        if chunk:
            return self._frames.feed(chunk)
        self._over = True
        return [self._frames.rest]


async def _beginning(response: aiohttp.ClientResponse, most: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) >= most:
            break
    return bytes(body[:most])


def _lost(error: Exception, *, answering: bool) -> ModelError:
    """Return the error of a broken connection: only one that was never made surely costs nothing."""
    description = f"{type(error).__name__}: {error}"
    if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
        return ModelError("connection", description, retryable=True)
    if isinstance(error, TimeoutError):
        return ModelError("timeout", description, retryable=True, billable=True)
    return ModelError("stream_cut" if answering else "connection", description, retryable=True, billable=True)
