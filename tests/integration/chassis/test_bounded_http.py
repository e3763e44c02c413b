"""A service's HTTP server: what it takes of a request before anything has looked at it."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from wayline.chassis.bounded_http import HEAD_MAX_BYTES, OWN_FILES, Places
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


async def endless(scope, receive, send) -> None:
    await receive()
    gone = asyncio.create_task(receive())
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while not gone.done():
        await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        # Where the client is gone, the server takes a piece without waiting.
        await asyncio.sleep(0)


@asynccontextmanager
async def listening(app: Any, **places: Any) -> AsyncIterator[tuple[int, Places]]:
    room = Places(**places)
    http = server(app, host="127.0.0.1", port=0, places=room)
    task = asyncio.create_task(http.serve())
    await until(lambda: http.started, why="the server listens")
    yield http.servers[0].sockets[0].getsockname()[1], room
    http.should_exit = True
    await task


async def ends(reader: asyncio.StreamReader) -> bytes:
    """Read until the server closes the connection."""
    try:
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nhost: a\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf",
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HT",
    ],
)
async def test_a_request_that_does_not_come_gives_its_place_back(begin: bytes):
    async with listening(echo_length, head_within_s=0.05, body_silent_s=0.05) as (port, places):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begin)

        await ends(reader)

        await until(lambda: places.taken == 0, why="the place is free")
        writer.close()


async def test_an_answer_that_nobody_reads_gives_its_place_back():
    async with listening(endless, write_stalled_s=0.05) as (port, places):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        await until(lambda: places.taken == 1, why="it is connected")

        await until(lambda: places.taken == 0, why="the place is free")
        writer.close()


async def test_one_address_does_not_take_every_connection():
    async with listening(echo_length, most=4, per_address=2) as (port, places):
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await until(lambda: places.taken == 2, why="both are connected")

        refused, _ = await asyncio.open_connection("127.0.0.1", port)
        assert await ends(refused) == b""

        other, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert b"200 OK" in await ends(other)
        for _, waiting in idle:
            waiting.close()


async def answer_briefly(scope, receive, send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def slowly(scope, receive, send) -> None:
    """Answer, and end only with the client."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok", "more_body": True})
    await receive()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")


async def test_a_resting_connection_is_closed_after_its_time():
    async with listening(answer_briefly, idle_s=0.05) as (port, places):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await ask(reader, writer)

        assert await ends(reader) == b""
        await until(lambda: places.taken == 0 and not places.idle, why="the place is free")
        writer.close()


@pytest.mark.parametrize("most", [{"most": 3}, {"most": 9, "per_address": 3}], ids=["all", "of one address"])
async def test_a_new_connection_takes_the_longest_resting_ones_place(most: dict[str, int]):
    async with listening(answer_briefly, idle_s=60, **most) as (port, places):
        first, second, third = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for resting in (first, second, third, first):
            await ask(*resting)

        new = await asyncio.open_connection("127.0.0.1", port)
        await ask(*new)

        assert await ends(second[0]) == b""
        for kept in (first, third, new):
            await ask(*kept)
        assert places.taken == 3
        for _, writer in (first, second, third, new):
            writer.close()


async def test_a_connection_being_answered_keeps_its_place():
    async with listening(slowly, most=1, idle_s=60) as (port, places):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await ask(reader, writer)

        refused, _ = await asyncio.open_connection("127.0.0.1", port)
        assert await ends(refused) == b""
        assert places.taken == 1
        writer.close()


def test_places_leave_files_for_the_process_itself():
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert Places.within_files(most=10**9).most <= max(soft, resource.getrlimit(resource.RLIMIT_NOFILE)[0]) - OWN_FILES
