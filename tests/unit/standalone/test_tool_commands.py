"""`wayline tools …` asks the gateway for what its arguments say."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from wayline.standalone.cli import app

BODY = b'{"agents": []}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(BODY) + BODY


async def asked_by(*words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a command against a gateway that answers anything, and return the paths that it got."""
    paths: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        paths.append((await reader.readuntil(b"\r\n\r\n")).decode().split()[1])
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        monkeypatch.setenv("WAYLINE_URL", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        done = await asyncio.to_thread(CliRunner().invoke, app, words)

    assert done.exit_code == 0, done.output
    return paths


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ((), {"days": ["30"]}),
        (("banker", "--days", "7"), {"agent": ["banker"], "days": ["7"]}),
    ],
)
async def test_tools_usage_asks_for_its_agent_and_days(words, query, monkeypatch: pytest.MonkeyPatch):
    [path] = await asked_by("tools", "usage", *words, monkeypatch=monkeypatch)

    assert (urlsplit(path).path, parse_qs(urlsplit(path).query)) == ("/v1/tools/usage", query)
