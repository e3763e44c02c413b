"""Recorded Chat Completions traffic, replayed on a socket through the adapter: the message, its usage, or the error.

    WAYLINE_SHARED=DIR pytest tests/evals/test_chat_recordings.py

What is expected is computed here, straight from the recorded bytes.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from wayline.contracts.chat import TextPart, UserMessage
from wayline.contracts.models import ModelCard
from wayline.llm import Finished, ModelError, ModelRequest, TextDelta
from wayline.llm.openai_chat import ChatCompletions, Reply

SHARED = Path(os.environ.get("WAYLINE_SHARED", Path(__file__).parents[3] / "shared"))
RECORDINGS = SHARED / "data" / "wire-recordings" / "openai-chat.jsonl.gz"
REQUEST = ModelRequest(
    ModelCard(provider="chat", model="m", tier="standard"),
    "",
    (UserMessage(parts=(TextPart(text="hi"),)),),
    (),
    50,
    "a1",
)
STOPS = {
    "stop": "end",
    "eos": "end",
    "length": "max_tokens",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refused",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not RECORDINGS.exists(), reason=f"no recordings at {RECORDINGS}; set WAYLINE_SHARED"),
]


@dataclass(frozen=True)
class Told:
    """What an exchange says, in terms that can be compared."""

    text: str
    calls: tuple[tuple[str, str | None, str], ...]
    stop: str
    usage: tuple[int, int, int, int, int] | None


async def test_every_recorded_exchange_is_understood():
    exchanges = [json.loads(line) for line in gzip.decompress(RECORDINGS.read_bytes()).splitlines()]
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    server = Replay()
    model = ChatCompletions(await server.start())
    for number, exchange in enumerate(exchanges):
        server.exchange = exchange
        outcome, problem = await _compare(model, exchange)
        outcomes[outcome] += 1
        if problem:
            wrong.append(f"{number} {exchange['host']}: {problem}")
    await model.close()
    await server.stop()
    print(dict(outcomes))

    assert wrong == []
    assert sum(outcomes.values()) == len(exchanges)


class Replay:
    """Answers with the recorded status, headers and body, cut at random places."""

    exchange: dict[str, Any]

    async def start(self) -> str:
        self._cuts = random.Random(7)
        self._runner = web.ServerRunner(web.Server(self._answer))
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        recorded = self.exchange["response"]
        body = (recorded if isinstance(recorded, str) else json.dumps(recorded)).encode()
        kind = "text/event-stream" if self.exchange["stream"] else "application/json"
        headers = {"Content-Type": kind, **self.exchange["response_headers"]}
        response = web.StreamResponse(status=self.exchange["status"], headers=headers)
        await response.prepare(request)
        while body:
            size = self._cuts.choice((1, 5, 64, 1_000, 20_000))
            await response.write(body[:size])
            body = body[size:]
        return response


async def _compare(model: ChatCompletions, exchange: dict[str, Any]) -> tuple[str, str | None]:
    """How the exchange ended for the adapter, and what is wrong with that."""
    pieces, error = [], None
    try:
        async for piece in model.stream(REQUEST):
            pieces.append(piece)
    except ModelError as caught:
        error = caught
    chunks = _chunks(exchange)
    told_inside = any("error" in chunk for chunk in chunks)
    if exchange["status"] != 200 or told_inside:
        return _compare_error(exchange, error)
    expected = _expected(chunks, whole=not exchange["stream"])
    if expected.usage is None:
        code = error.code if error else "none"
        got = _without_usage(exchange, chunks)
        return "200 without usage", None if (code, got) == ("no_usage", expected) else f"{code}: {got} != {expected}"
    if error is not None or not isinstance(pieces[-1], Finished):
        return "200", f"{error!r}"
    streamed = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    got = _told(pieces[-1])
    right = got == expected and streamed == expected.text
    return "200", None if right else f"{got} != {expected}, streamed {streamed!r}"


def _compare_error(exchange: dict[str, Any], error: ModelError | None) -> tuple[str, str | None]:
    codes = {400: "invalid_request", 404: "unknown_model", 429: "rate_limited", 200: "invalid_request"}
    expected = (codes[exchange["status"]], exchange["status"] == 429)
    got = (error.code, error.retryable) if error else None
    return f"error {exchange['status']}", None if got == expected else f"{error!r} is not {expected}"


def _chunks(exchange: dict[str, Any]) -> list[dict[str, Any]]:
    if not exchange["stream"]:
        return [exchange["response"]]
    lines = [line[5:].strip() for line in exchange["response"].splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line and line != "[DONE]"]


def _expected(chunks: list[dict[str, Any]], *, whole: bool) -> Told:
    """The first choice, put together in the plainest way."""
    text, refusal, stop, usage = "", "", None, None
    calls: dict[int, list[Any]] = {}
    for chunk in chunks:
        usage = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage") or usage
        for choice in chunk.get("choices") or []:
            if choice["index"]:
                continue
            stop = choice.get("finish_reason") or stop
            said = choice.get("message" if whole else "delta") or {}
            content = said.get("content") or ""
            parts = content if isinstance(content, list) else [{"text": content}]
            text += "".join(part["text"] for part in parts if "text" in part)
            refusal += said.get("refusal") or ""
            if said.get("function_call"):
                said = {**said, "tool_calls": [{"index": 0, "function": said["function_call"]}]}
            for place, call in enumerate(said.get("tool_calls") or []):
                kept = calls.setdefault(call.get("index", place), ["", None, ""])
                # One recorded endpoint says the whole name with each piece.
                name = call["function"].get("name") or ""
                kept[0] += name if name != kept[0] else ""
                kept[1] = call.get("id") or kept[1]
                kept[2] += call["function"].get("arguments") or ""
    told = tuple((name, id, _canonical(arguments or "{}")) for name, id, arguments in calls.values())
    reason = "refused" if refusal else STOPS[stop or "stop"]
    if told and reason == "end":
        reason = "tools"
    return Told(text + refusal, told, reason, _counts(usage) if usage else None)


def _counts(usage: dict[str, Any]) -> tuple[int, int, int, int, int]:
    read = usage.get("prompt_tokens_details") or {}
    written = usage.get("completion_tokens_details") or {}
    return (
        usage["prompt_tokens"],
        usage["completion_tokens"],
        read.get("cached_tokens") or 0,
        read.get("cache_write_tokens") or 0,
        written.get("reasoning_tokens") or 0,
    )


def _canonical(arguments: str) -> str:
    return json.dumps(json.loads(arguments), sort_keys=True)


def _told(finished: Finished) -> Told:
    calls = tuple(
        (call.tool, call.provider_id, json.dumps(call.arguments, sort_keys=True))
        for call in finished.message.tool_calls
    )
    used = finished.usage
    counts = (used.input, used.output, used.cache_read, used.cache_write_5m, used.reasoning)
    return Told(finished.message.text, calls, finished.stop_reason, counts)


def _without_usage(exchange: dict[str, Any], chunks: list[dict[str, Any]]) -> Told:
    """The message of an exchange that counted nothing."""
    reply = Reply()
    for chunk in chunks:
        reply.take(chunk)
    reply.take({"usage": {"prompt_tokens": 1}})
    told = _told(reply.finished(provider="chat", model="m"))
    return Told(told.text, told.calls, told.stop, None)
