"""Limit what a server's answer may take in memory, and read it before the MCP library does, which cannot bear much.

A module of its own, because httpx2 takes a while to import.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

import httpx2

from wayline.tool_registry.connection.http.answer_streams import AnswerLimits, EventStream, MessageBody
from wayline.tool_registry.connection.http.asked_messages import ANSWERED_HERE, asked_message
from wayline.tool_registry.connection.http.failed_answers import FailedAnswer
from wayline.tool_registry.connection.http.pace import PIECE_BYTES, Pace

LENGTH_DIGITS_MAX = 18
"""Of the length that an answer says it has: Python refuses to read thousands of digits."""
EVENT_STREAM = "text/event-stream"
JSON = "application/json"


class AnswerRefused(httpx2.StreamError):
    """An answer that is not read. The library makes of this class an error of the one request."""


def bound_answers(
    *, event_streams: frozenset[str], limits: AnswerLimits
) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Return a hook of a client that limits each answer; `event_streams` are the methods that events may answer."""

    async def bound(answer: httpx2.Response) -> None:
        if ANSWERED_HERE in answer.extensions:
            return
        inner = _Paced(cast("httpx2.AsyncByteStream", answer.stream), limits.in_flight.pace)
        asked = asked_message(answer.request) if "POST" in event_streams else None
        is_failure = answer.status_code >= httpx2.codes.BAD_REQUEST
        refused = _why_refused(answer, limits, is_call=asked is not None and asked.is_call)
        if asked is not None and is_failure:
            answer.stream = FailedAnswer(inner, answer, asked, is_read=not refused)
        elif refused and asked is None:
            answer.stream = _Unread(inner, "" if is_failure else refused)
        elif not refused and _is_event_stream(answer, event_streams):
            answer.stream = EventStream(inner, limits, asked)
            return
        elif asked is not None and answer.is_success and answer.status_code != httpx2.codes.ACCEPTED:
            answer.stream = MessageBody(inner, limits, asked, why_unread=refused)
        else:
            answer.stream = _Bounded(inner, most=limits.message_bytes, cut=is_failure)
            return
        # Nothing is decoded, and the library reads what is JSON: so it finds the reason.
        answer.headers.pop("Content-Encoding", None)
        answer.headers["Content-Type"] = JSON

    return bound


def _why_refused(answer: httpx2.Response, limits: AnswerLimits, *, is_call: bool) -> str:
    """Return why nothing of an answer is read; of a call's answer its beginning is, however long it is."""
    # Compressed several times over, a few kilobytes take minutes to unpack, and the whole process waits for them.
    encodings = answer.headers.get_list("Content-Encoding", split_commas=True)
    if any(encoding.strip().lower() not in ("", "identity") for encoding in encodings):
        return "the server compressed its answer, which it was asked not to do"
    length = answer.headers.get("Content-Length", "")
    if is_call or not (length.isascii() and length.isdecimal()):
        return ""
    too_long = len(length.lstrip("0")) > LENGTH_DIGITS_MAX or int(length) > limits.message_bytes
    return f"the server's answer has more than {limits.message_bytes} bytes" if too_long else ""


def _is_event_stream(answer: httpx2.Response, methods: frozenset[str]) -> bool:
    is_asked = answer.request.method in methods and answer.status_code == httpx2.codes.OK
    return is_asked and answer.headers.get("Content-Type", "").lower().startswith(EVENT_STREAM)


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
                raise AnswerRefused(f"the server's answer has more than {self._most} bytes")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Paced(httpx2.AsyncByteStream):
    """A body whose small pieces are read no faster than its tenant's pace."""

    def __init__(self, inner: httpx2.AsyncByteStream, pace: Pace) -> None:
        self._inner = inner
        self._pace = pace

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            await self._pace.spend(max(0, PIECE_BYTES - len(piece)))
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
