"""`wayline tools …` asks the gateway for what its arguments say."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from rich.console import Console
from typer.testing import CliRunner

from wayline.standalone.cli import app
from wayline.standalone.commands import tools

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


ARGUMENTS = ("--arg", "city=Bonn", "--arg", "days:=3", "--arg", 'of:={"a": [1]}', "--arg", "note=a=b")


def called(*words: str, status: str = "success", monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[Any], str]:
    """Run `tools call`, and return its exit code, what it calls, and what it says."""
    calls: list[Any] = []
    result = {"status": status, "tool": "weather", "text": "wet", "error": None, "structured": None, "images": []}

    class Client:
        async def call_tool(self, *asked: Any, **named: Any) -> dict[str, Any]:
            calls.append((*asked, named))
            return result

    def answer(ask: Any, *, draw: Any, **_: Any) -> dict[str, Any]:
        given = asyncio.run(ask(Client()))
        Console().print(draw({**given, "cost_usd": "0.01", "repeated": False}))
        return given

    monkeypatch.setattr(tools, "answer", answer)
    done = CliRunner().invoke(app, ["tools", "call", "weather", *words])
    return done.exit_code, calls, done.output


def test_a_tool_is_called_with_text_and_json(monkeypatch: pytest.MonkeyPatch):
    code, calls, said = called(*ARGUMENTS, "--key", "k1", "--user", "ann", monkeypatch=monkeypatch)

    arguments = {"city": "Bonn", "days": 3, "of": {"a": [1]}, "note": "a=b"}
    assert (code, calls) == (0, [("weather", arguments, {"key": "k1", "user_id": "ann"})])
    assert "wet" in said and "$0.01" in said


@pytest.mark.parametrize(("status", "code"), [("in_progress", 3), ("unknown", 1), ("failed", 1)])
def test_a_call_that_brings_no_result_says_so_by_its_code(status: str, code: int, monkeypatch: pytest.MonkeyPatch):
    [first, second] = [called(status=status, monkeypatch=monkeypatch) for _ in range(2)]

    assert first[0] == second[0] == code
    keys = [one[1][0][-1]["key"] for one in (first, second)]
    assert keys[0] != keys[1] and all(keys)
    assert (keys[0] in first[2]) == (status == "in_progress")


@pytest.mark.parametrize("argument", ["city", "=Bonn", "days:=three"])
def test_an_argument_without_name_or_json_is_refused(argument: str, monkeypatch: pytest.MonkeyPatch):
    code, calls, _ = called("--arg", argument, monkeypatch=monkeypatch)

    assert (code, calls) == (1, [])
