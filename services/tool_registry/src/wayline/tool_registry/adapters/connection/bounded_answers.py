"""Limit what a server's answer may take in memory: the MCP library reads one to its end before it looks at it.

A module of its own, because httpx2 takes a while to import.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

import httpx2

from wayline.tool_registry.adapters.connection.failed_answers import FailedAnswer, why_failed

ANSWER_MAX_BYTES = 64 * 1024 * 1024
"""Of one answer that is not streamed as events, as of a line of a program; each event has a limit of its own."""
EVENT_STREAM = "text/event-stream"
JSON = "application/json"


class AnswerRefused(httpx2.StreamError):
    """An answer that is not read. The library makes of this class an error of the one request."""


def bound_answers(*, event_streams: frozenset[str]) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Return a hook of a client that limits each answer; `event_streams` are the methods that events may answer."""

    async def bound(answer: httpx2.Response) -> None:
        inner = cast("httpx2.AsyncByteStream", answer.stream)
        is_failure = answer.status_code >= httpx2.codes.BAD_REQUEST
        if is_failure and _is_explained(answer, event_streams):
            is_json = not _refusal(answer) and answer.headers.get("Content-Type", "").lower().startswith(JSON)
            answer.stream = FailedAnswer(inner, why_failed(answer), is_json=is_json)
            answer.headers.pop("Content-Encoding", None)
            answer.headers["Content-Type"] = JSON
        elif why := _refusal(answer):
            answer.stream = _Unread(inner, "" if is_failure else why)
            # Nothing is decoded, and the library reads what is JSON: so it finds the reason.
            answer.headers.pop("Content-Encoding", None)
            answer.headers["Content-Type"] = JSON
        elif is_failure or not _is_event_stream(answer, event_streams):
            answer.stream = _Bounded(inner, most=ANSWER_MAX_BYTES, cut=is_failure)

    return bound


def _refusal(answer: httpx2.Response) -> str:
    # Compressed several times over, a few kilobytes take minutes to unpack, and the whole process waits for them.
    encodings = answer.headers.get_list("Content-Encoding", split_commas=True)
    if any(encoding.strip().lower() not in ("", "identity") for encoding in encodings):
        return "the server compressed its answer, which it was asked not to do"
    length = answer.headers.get("Content-Length", "")
    return _too_long(ANSWER_MAX_BYTES) if length.isdecimal() and int(length) > ANSWER_MAX_BYTES else ""


def _is_explained(answer: httpx2.Response, methods: frozenset[str]) -> bool:
    """Return whether an answer is to a message of MCP; a 404 has a meaning of its own to the library."""
    is_message = answer.request.method == "POST" and "POST" in methods
    return is_message and answer.status_code != httpx2.codes.NOT_FOUND


def _is_event_stream(answer: httpx2.Response, methods: frozenset[str]) -> bool:
    is_asked = answer.request.method in methods and answer.status_code == httpx2.codes.OK
    return is_asked and answer.headers.get("Content-Type", "").lower().startswith(EVENT_STREAM)


def _too_long(most: int) -> str:
    return f"the server's answer has more than {most} bytes"


class _Unread(httpx2.AsyncByteStream):
    """An answer of which nothing is read; of a failure the status alone counts, and `why` is empty."""

    def __init__(self, inner: httpx2.AsyncByteStream, why: str) -> None:
        self._inner = inner
        self._why = why

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._why:
            raise AnswerRefused(self._why)
        yield b""

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """An answer that is read up to a limit; `cut` ends it there, otherwise more is refused."""

    def __init__(self, inner: httpx2.AsyncByteStream, *, most: int, cut: bool) -> None:
        self._inner = inner
        self._left = most
        self._most = most
        self._cut = cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:
            self._left -= len(part)
            if self._left < 0:
                if self._cut:
                    return
                raise AnswerRefused(_too_long(self._most))
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
