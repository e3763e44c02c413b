"""A model provider that costs next to nothing: some steps with tool calls, then an answer, as Chat Completions streams.

    python tests/bench/speed/model_server.py PORT

What it does is its model's name: `bench-200-2x1` thinks for 200 ms, and asks for one call in each of two steps.
`GET /open` says how many requests it holds.
"""

from __future__ import annotations

import asyncio
import sys
from functools import cache

import orjson
import uvloop
from aiohttp import web

TOOL = "get_current_time"
ASSISTANT_ROLE = b'"role":"assistant"'


def chunks(delta: dict[str, object], finish: str) -> bytes:
    """One streamed reply, written at once."""
    usage = {"prompt_tokens": 120, "completion_tokens": 12, "total_tokens": 132}
    values = (
        {"choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    )
    return b"".join(b"data: " + orjson.dumps(value) + b"\n\n" for value in values) + b"data: [DONE]\n\n"


ZONES = 26
ANSWERS = chunks({"content": "It is time to measure, and here is what I found."}, "stop")


@cache
def asks(width: int, step: int) -> bytes:
    calls = [
        {"index": n, "id": f"call_{n}", "type": "function", "function": function(step * width + n)}
        for n in range(width)
    ]
    return chunks({"tool_calls": calls}, "tool_calls")


def function(n: int) -> dict[str, str]:
    """Return a call for the time in one zone after another: a job that repeats one call is taken for a loop."""
    return {"name": TOOL, "arguments": f'{{"timezone":"Etc/GMT{n % ZONES - 13:+d}"}}'}


class ModelServer:
    def __init__(self) -> None:
        self.open = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/open":
            return web.Response(text=str(self.open))
        body = await request.read()
        self.open += 1
        try:
            _, delay_ms, plan = orjson.loads(body)["model"].split("-")
            steps, width = map(int, plan.split("x"))
            if delay_ms != "0":
                await asyncio.sleep(int(delay_ms) / 1_000)
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            step = body.count(ASSISTANT_ROLE)
            await response.write(ANSWERS if step >= steps else asks(width, step))
            await response.write_eof()
            return response
        finally:
            self.open -= 1


async def serve(port: int) -> None:
    # No routes and no middleware: it is the same for everybody, and should be a small part of what is measured.
    runner = web.ServerRunner(web.Server(ModelServer().answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=2_048).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
