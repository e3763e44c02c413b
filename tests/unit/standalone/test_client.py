"""The client keeps a job's story whole over broken connections."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from wayline.standalone import client
from wayline.standalone.client import Address, Api, ApiError, NotReachable


def sse(seq: int, kind: str) -> bytes:
    return f"id: {seq}\nevent: {kind}\ndata: {json.dumps({'seq': seq, 'type': kind})}\n\n".encode()


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: 100000\r\n\r\n"
DELTA = b'event: delta\ndata: {"step": 1, "attempt": 1, "text": "so far"}\n\n'


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[tuple[str, list[str]]]:
    """A server that gives each connection the next answer and closes it; it notes what was asked."""
    asked: list[str] = []
    left = list(answers)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(left.pop(0))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_a_stream_cut_in_the_middle_goes_on_after_the_last_event(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "RECONNECT_AFTER_S", 0)
    cut = STREAM + sse(1, "job.submitted") + sse(2, "job.routed") + DELTA + b"id: 3\nevent: job.cl"
    rest = STREAM + sse(3, "job.claimed") + sse(4, "job.completed")

    async with answering(cut, rest) as (url, asked), Api(Address(url, "wl_key")) as api:
        told = [event async for event in api.events("j1")]

    assert [event.get("seq") for event in told] == [1, 2, None, 3, 4]
    assert "last-event-id: 0" in asked[0] and "last-event-id: 2" in asked[1]
    assert all("authorization: bearer wl_key" in request for request in asked)


async def test_a_gateway_that_does_not_come_back_is_said_to_be_away(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "RECONNECT_AFTER_S", 0)

    async with Api(Address("http://127.0.0.1:9")) as api:
        with pytest.raises(NotReachable, match="start Wayline with `wayline up`, or set WAYLINE_URL"):
            async for _ in api.events("j1"):
                pass


async def test_what_the_gateway_refuses_is_told_in_its_own_words():
    body = b'{"code": "not_found", "title": "not found", "detail": "no job \'j1\'", "status": 404}'
    answer = b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body

    async with answering(answer, answer) as (url, _), Api(Address(url)) as api:
        with pytest.raises(ApiError, match=r"^no job 'j1'$") as refused:
            await api.get("/v1/jobs/j1")
        with pytest.raises(ApiError, match=r"^no job 'j1'$"):
            async for _ in api.events("j1"):
                pass

    assert (refused.value.code, refused.value.status) == ("not_found", 404)


@pytest.mark.parametrize("said", ["502 Bad Gateway", "307 Temporary Redirect\r\nlocation: /elsewhere", "200 OK"])
async def test_a_server_that_is_no_wayline_is_said_to_be_none(said: str):
    answer = f"HTTP/1.1 {said}\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops".encode()

    async with answering(answer) as (url, _), Api(Address(url)) as api:
        with pytest.raises(ApiError, match=rf"answered {said[:3]}, not as Wayline does: is WAYLINE_URL right\?"):
            await api.get("/v1/jobs")


@pytest.fixture
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory where nothing runs, and no variable that says where something does."""
    for name in ("WAYLINE_URL", "WAYLINE_HTTP_PORT", "WAYLINE_API_KEY", "WAYLINE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_runs_in_this_directory_is_found_at_whatever_port(nothing_set: Path, monkeypatch: pytest.MonkeyPatch):
    note = nothing_set / ".wayline" / "up.json"
    note.parent.mkdir()

    def address(said: object) -> str:
        note.write_text(said if isinstance(said, str) else json.dumps(said))
        return Address.from_environment().url

    assert address({"pid": os.getpid(), "gateway": "http://127.0.0.1:1234"}) == "http://127.0.0.1:1234"
    nobody = 2**22 + 1
    for nothing in (
        {"pid": nobody, "gateway": "http://127.0.0.1:1234"},
        {"pid": os.getpid(), "gateway": None},
        "",
        "[]",
    ):
        assert address(nothing) == "http://127.0.0.1:8080"
    monkeypatch.setenv("WAYLINE_HTTP_PORT", "9000")
    assert address({"pid": os.getpid(), "gateway": "http://127.0.0.1:1234"}) == "http://127.0.0.1:9000"


def test_the_address_comes_from_the_environment(nothing_set: Path, monkeypatch: pytest.MonkeyPatch):
    assert Address.from_environment() == Address("http://127.0.0.1:8080")

    monkeypatch.setenv("WAYLINE_HTTP_PORT", "9000")
    assert Address.from_environment() == Address("http://127.0.0.1:9000")

    monkeypatch.setenv("WAYLINE_URL", "https://wayline.example/")
    monkeypatch.setenv("WAYLINE_API_KEY", "wl_key")
    assert Address.from_environment() == Address("https://wayline.example", "wl_key")
