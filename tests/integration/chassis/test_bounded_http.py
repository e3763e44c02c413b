"""A service's HTTP server: what it takes of a request before anything has looked at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from wayline.chassis.bounded_http import HEAD_MAX_BYTES
from wayline.chassis.probes import server
from wayline.testkit import until

SOCKETS_HOLD_BYTES = 16 * 1024 * 1024
PIECE = b"a" * 16_000


async def echo_length(scope, receive, send) -> None:
    length, more = 0, True
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": str(length).encode()})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    http = server(echo_length, host="127.0.0.1", port=0)
    task = asyncio.create_task(http.serve())
    await until(lambda: http.started, why="the server listens")
    yield http.servers[0].sockets[0].getsockname()[1]
    http.should_exit = True
    await task


async def send_until_closed(port: int, begin: bytes, piece: bytes) -> int:
    """Send a piece again and again until the server closes the connection, and return how many bytes it let in."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent_bytes = 0
    writer.write(begin)
    try:
        while not reader.at_eof() and sent_bytes <= 2 * SOCKETS_HOLD_BYTES:
            writer.write(piece)
            sent_bytes += len(piece)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()
    return sent_bytes


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET / HTTP/1.1\r\nhost: a\r\n", b"x: " + PIECE + b"\r\n"),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: ", PIECE),
        (b"GET /", PIECE),
        (b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", b"x: " + PIECE + b"\r\n"),
    ],
    ids=["headers", "one header", "path", "trailers"],
)
async def test_a_request_whose_head_does_not_end_is_cut(port, begin, piece):
    sent_bytes = await send_until_closed(port, begin, piece)

    assert sent_bytes <= SOCKETS_HOLD_BYTES


@pytest.mark.parametrize("pieces", [1, 3_000])
async def test_a_body_above_the_limit_of_heads_is_read(port, pieces):
    body = b"a" * (HEAD_MAX_BYTES * 4)
    size = len(body) // pieces
    chunks = b"".join(b"%x\r\n%s\r\n" % (size, body[:size]) for _ in range(pieces))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    answer = await reader.read()
    writer.close()

    assert answer.startswith(b"HTTP/1.1 200")
    assert str(size * pieces).encode() in answer
