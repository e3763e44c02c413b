"""What a call through our adapters costs in CPU, beside the bare SDK on the same transport.

    python tests/bench/adapters.py [--calls 300]

The provider is a process of its own, so that only the caller's CPU is counted. Both read the same streams to the end;
the bare SDK is given a body that is ready, ours builds it from a history of twenty messages and ten tools.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from wayline.contracts.chat import AssistantMessage, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.models import CacheRules, ModelCard
from wayline.contracts.tools import ToolDefinition
from wayline.llm import Finished, Model, ModelRequest
from wayline.llm.anthropic import Anthropic
from wayline.llm.anthropic_body import body as messages_body
from wayline.llm.openai import OpenAI
from wayline.llm.openai_body import body as responses_body

ROUNDS = 5
WORDS = {"short": 5, "long": 200}
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}


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


REPLIES = {
    (f"/{size}{path}"): make(words)
    for size, words in WORDS.items()
    for path, make in (("/v1/messages", claude), ("/responses", gpt))
}


def provide(port: Any) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        reply = REPLIES[request.path]
        for start in range(0, len(reply), 1_024):
            await response.write(reply[start : start + 1_024])
        await response.write_eof()
        return response

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.put(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(serve())


def asking(provider: str) -> ModelRequest:
    cache = CacheRules(kind="breakpoints" if provider == "anthropic" else "automatic")
    messages: list[Any] = []
    for n in range(7):
        call = ToolCall(call="1", tool="tool_1", arguments={"query": "what", "limit": n}, provider_id=f"call_{n}")
        messages += [
            UserMessage(parts=(TextPart(text="Find out what there is to know. " * 10),)),
            AssistantMessage(text="I look.", tool_calls=(call,)),
            ToolMessage(call="1", tool="tool_1", content="There is much to know. " * 50),
        ]
    return ModelRequest(
        card=ModelCard(provider=provider, model="m", tier="standard", cache=cache),
        system="Be brief. " * 200,
        messages=tuple(messages[:-1]),
        tools=tuple(ToolDefinition(name=f"tool_{n}", description="A tool.", input_schema=SCHEMA) for n in range(10)),
        max_output_tokens=1_000,
        attempt_id="acme/j1/1/m1",
        breakpoints=(0, 15),
    )


def ours(model: Model, request: ModelRequest) -> Callable[[], Awaitable[None]]:
    async def call() -> None:
        last = [piece async for piece in model.stream(request)][-1]
        assert isinstance(last, Finished)

    return call


def bare_anthropic(url: str) -> Any:
    from anthropic import AsyncAnthropic, DefaultAioHttpClient

    off: Any = {"propagation": False, "traces": {"enabled": False}}
    client = DefaultAioHttpClient()
    return AsyncAnthropic(base_url=url, api_key="none", max_retries=0, open_telemetry=off, http_client=client)


def bare_openai(url: str) -> Any:
    from openai import AsyncOpenAI, DefaultAioHttpClient

    return AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=DefaultAioHttpClient())


def messages(client: Any, request: ModelRequest) -> Callable[[], Awaitable[None]]:
    ready = messages_body(request)

    async def call() -> None:
        async for _ in await client.messages.create(**ready):
            pass

    return call


def responses(client: Any, request: ModelRequest) -> Callable[[], Awaitable[None]]:
    ready = responses_body(request)

    async def call() -> None:
        async for _ in await client.responses.create(**ready):
            pass

    return call


CALLS = {"anthropic": messages, "openai": responses}


async def cpu_ms(call: Callable[[], Awaitable[None]], calls: int) -> float:
    began = time.process_time()
    for _ in range(calls):
        await call()
    return (time.process_time() - began) * 1_000 / calls


async def measure(port: int, calls: int) -> None:
    print("| provider | reply | bare SDK, ms CPU a call | ours | ratio |\n|---|---|---|---|---|")
    for size, words in WORDS.items():
        url = f"http://127.0.0.1:{port}/{size}"
        for provider, model, bare in (("anthropic", Anthropic, bare_anthropic), ("openai", OpenAI, bare_openai)):
            request = asking(provider)
            adapter, sdk = model(url), bare(url)
            both = CALLS[provider](sdk, request), ours(adapter, request)
            for call in both:
                await cpu_ms(call, 20)
            # Taken in turns, so that a busy machine is unkind to both.
            rounds = [[await cpu_ms(call, calls // ROUNDS) for call in both] for _ in range(ROUNDS)]
            theirs, own = (statistics.median(figures) for figures in zip(*rounds, strict=True))
            print(f"| {provider} | {words} words | {theirs:.2f} | {own:.2f} | {own / theirs:.2f} |", flush=True)
            await adapter.close()
            await sdk.close()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--calls", type=int, default=300)
    heard: Any = multiprocessing.Queue()
    provider = multiprocessing.Process(target=provide, args=(heard,), daemon=True)
    provider.start()
    try:
        asyncio.run(measure(heard.get(), options.parse_args().calls))
    finally:
        provider.terminate()
