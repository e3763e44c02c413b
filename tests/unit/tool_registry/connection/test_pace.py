"""A server that makes much work of few bytes is read slowly, and others have turns meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from wayline.tool_registry.connection.http import answer_streams
from wayline.tool_registry.connection.http import pace as pacing
from wayline.tool_registry.connection.http.answer_streams import AnswerLimits
from wayline.tool_registry.connection.http.bounded_answers import bound_answers
from wayline.tool_registry.connection.http.bytes_in_flight import BytesInFlight
from wayline.tool_registry.connection.http.pace import PIECE_BYTES, TURN_BYTES, Pace

ENDLESS = 100_000
TURNS = 200


class Pieces(httpx2.AsyncByteStream):
    """A body of many equal pieces, of which none has to be waited for."""

    def __init__(self, piece: bytes, *, count: int = ENDLESS) -> None:
        self._piece = piece
        self._count = count
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(self._count):
            self.read += 1
            yield self._piece

    async def aclose(self) -> None:
        pass


def limits(pace: Pace) -> AnswerLimits:
    in_flight = BytesInFlight(10**9, pace=pace)
    return AnswerLimits(call_bytes=10**8, result_bytes=10**6, message_bytes=10**8, in_flight=in_flight)


async def read(stream: httpx2.AsyncByteStream) -> None:
    async for _ in stream:
        pass


async def bounded(inner: Pieces, pace: Pace, *, media_type: str) -> httpx2.AsyncByteStream:
    """Return a body as the registry's HTTP client reads it."""
    answer = httpx2.Response(200, stream=inner, headers={"content-type": media_type})
    answer.request = httpx2.Request("GET", "http://server/mcp")
    await bound_answers(event_streams=frozenset({"GET"}), limits=limits(pace))(answer)
    assert isinstance(answer.stream, httpx2.AsyncByteStream)
    return answer.stream


async def pieces_read_in(turns: int, inner: Pieces, stream: httpx2.AsyncByteStream) -> int:
    """Return how much of a body was read while another task had so many turns."""
    reading = asyncio.create_task(read(stream))
    for _ in range(turns):
        await asyncio.sleep(0)
    reading.cancel()
    return inner.read


@pytest.mark.parametrize(
    ("piece", "media_type"),
    [(b"x", "application/json"), (b": busy\n\n", "text/event-stream"), (b"x", "text/event-stream")],
)
async def test_small_pieces_leave_turns_to_others(piece, media_type):
    inner = Pieces(piece)
    stream = await bounded(inner, Pace(), media_type=media_type)

    assert 0 < await pieces_read_in(TURNS, inner, stream) <= (TURNS + 1) * TURN_BYTES / (PIECE_BYTES - len(piece)) + 1


@pytest.mark.parametrize(
    ("piece", "media_type"),
    [(b"x", "application/json"), (b": busy\n\n" * 10_000, "text/event-stream"), (b":\n" * 5_000, "text/event-stream")],
)
async def test_a_tenant_that_has_spent_its_burst_is_read_no_further(piece, media_type, monkeypatch):
    monkeypatch.setattr(pacing, "PAUSE_MAX_S", 3_600.0)
    spent = Pace(burst_bytes=10_000, rate_bytes_s=0.001)
    inner = Pieces(piece)
    stream = await bounded(inner, spent, media_type=media_type)

    assert await pieces_read_in(TURNS, inner, stream) <= 12


async def test_large_pieces_cost_nothing():
    inner = Pieces(bytes(PIECE_BYTES), count=1_000)
    spent = Pace(burst_bytes=0, rate_bytes_s=0.001)

    await asyncio.wait_for(read(await bounded(inner, spent, media_type="application/json")), 30)

    assert inner.read == 1_000


def test_lines_of_an_event_that_is_cut_are_not_kept():
    event = answer_streams._Event()  # pyright: ignore[reportPrivateUsage]
    for _ in range(ENDLESS):
        event.add(b"data: x", 100)
        event.end_line()

    assert len(event.lines) <= answer_streams.HEAD_BYTES
