"""A model provider that costs next to nothing: two tool calls, then an answer, as a Chat Completions stream.

    python tests/bench/speed/model_server.py PORT

The delay is part of the model's name: `bench-200` thinks for 200 ms. `GET /open` says how many requests it holds.
"""

from __future__ import annotations

import asyncio
import sys

import orjson
import uvloop
from aiohttp import web

TOOL = "get_current_time"
CALLS = 2
SAID_BY_MODEL = b'"role":"assistant"'


def chunks(delta: dict[str, object], finish: str) -> bytes:
    """One streamed reply, written at once."""
    usage = {"prompt_tokens": 120, "completion_tokens": 12, "total_tokens": 132}
    values = (
        {"choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    )
    return b"".join(b"data: " + orjson.dumps(value) + b"\n\n" for value in values) + b"data: [DONE]\n\n"


FUNCTION = {"name": TOOL, "arguments": "{}"}
ASKS = chunks({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": FUNCTION}]}, "tool_calls")
ANSWERS = chunks({"content": "It is time to measure, and here is what I found."}, "stop")


class ModelServer:
    def __init__(self) -> None:
        self.open = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/open":
            return web.Response(text=str(self.open))
        body = await request.read()
        self.open += 1
        try:
            delay_ms = int(orjson.loads(body)["model"].rpartition("-")[2])
            if delay_ms:
                await asyncio.sleep(delay_ms / 1_000)
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(ANSWERS if body.count(SAID_BY_MODEL) >= CALLS else ASKS)
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
