"""A provider that costs next to nothing: each path always gives the same stream."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import orjson
import uvloop
from aiohttp import web

WORDS = {"short": 5, "long": 200}
PIECE_BYTES = 1_024
"""So many bytes arrive at a time."""
READY_WITHIN_S = 30.0


def sse(events: list[dict[str, Any]]) -> bytes:
    return b"".join(f"event: {each['type']}\ndata: ".encode() + orjson.dumps(each) + b"\n\n" for each in events)


def claude(words: int) -> bytes:
    usage = {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a word "}}
    return sse(
        [
            {"type": "message_start", "message": {**start, "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *[delta] * words,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": words}},
            {"type": "message_stop"},
        ]
    )


def gpt(words: int) -> bytes:
    usage = {"input_tokens": 100, "output_tokens": words, "total_tokens": 100 + words}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    part = {"type": "output_text", "text": "a word " * words, "annotations": []}
    item = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    begun = {"id": "r", "object": "response", "created_at": 0, "model": "m", "status": "in_progress", "output": []}
    delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *[{**delta, "delta": "a word ", "logprobs": []}] * words,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**begun, "status": "completed", "output": [item], "usage": usage}},
    ]
    return sse([{**event, "sequence_number": n} for n, event in enumerate(events)])


def chat(words: int) -> bytes:
    usage = {"prompt_tokens": 100, "completion_tokens": words, "total_tokens": 100 + words}
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    chunks = [
        {**whole, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]},
        *[{**whole, "choices": [{"index": 0, "delta": {"content": "a word "}, "finish_reason": None}]}] * words,
        {**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {**whole, "choices": [], "usage": usage},
    ]
    return b"".join(b"data: " + orjson.dumps(each) + b"\n\n" for each in chunks) + b"data: [DONE]\n\n"


REPLIES = {
    (f"/{size}{path}"): make(words)
    for size, words in WORDS.items()
    for path, make in (("/v1/messages", claude), ("/responses", gpt), ("/chat/completions", chat))
}


async def _answer(request: web.Request) -> web.StreamResponse:
    await request.read()
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    reply = REPLIES[request.path]
    for start in range(0, len(reply), PIECE_BYTES):
        await response.write(reply[start : start + PIECE_BYTES])
    await response.write_eof()
    return response


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    """The provider's URL, while the block runs."""
    app = web.Application()
    app.router.add_post("/{path:.*}", _answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _serve(heard: Any) -> None:
    async def serve() -> None:
        async with served() as url:
            heard.put(url)
            await asyncio.Event().wait()

    uvloop.run(serve())


@contextmanager
def process() -> Iterator[str]:
    """The same, in a process of its own."""
    heard: Any = multiprocessing.Queue()
    child = multiprocessing.Process(target=_serve, args=(heard,), daemon=True)
    child.start()
    try:
        yield heard.get(timeout=READY_WITHIN_S)
    finally:
        child.terminate()
        child.join()
