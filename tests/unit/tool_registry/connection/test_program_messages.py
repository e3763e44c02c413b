"""Messages that a program writes in another way than line by line."""

from __future__ import annotations

import asyncio
import sys

import pytest

from wayline.tool_registry.connection.program_streams import program_streams

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are guarded on POSIX alone")

NOTE = '{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}'
ANSWER = '{"jsonrpc": "2.0", "id": 1, "result": {"done": true}}'


@pytest.mark.parametrize(
    "written",
    [ANSWER, f"{ANSWER}\r\n", f"[{NOTE}, {ANSWER}]\n", f"[{ANSWER}]", f"Hello {ANSWER}\n", f"{ANSWER}\n{NOTE}\n"],
    ids=[
        "without a line end",
        "in lines of Windows",
        "in a batch",
        "in a last batch",
        "behind words",
        "before another",
    ],
)
async def test_an_answer_is_read_however_its_program_writes_it(written: str):
    argv = [sys.executable, "-c", f"import sys; sys.stdout.write({written!r})"]
    streams = program_streams(argv, env={}, cwd=None, errors_to=None, ended=lambda _: None)

    async with asyncio.timeout(20), streams as (incoming, _):
        first = (await incoming.receive()).message

    assert (first.id, first.result) == (1, {"done": True})
