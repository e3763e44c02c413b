"""Recorded Chat Completions traffic, replayed on a socket through the adapter: the message, its usage, or the error.

What is expected is computed here, straight from the recorded bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from wayline.contracts.chat import TextPart, UserMessage
from wayline.contracts.models import ModelCard
from wayline.llm import Finished, ModelError, ModelRequest, TextDelta
from wayline.llm.openai_chat import ChatCompletions

from ..recordings import Recording, recordings, replay

CARD = ModelCard(provider="chat", model="m", tier="standard")
ASKED = UserMessage(parts=(TextPart(text="hi"),))
STOPS = {
    "stop": "end",
    "eos": "end",
    "length": "max_tokens",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refused",
}


@dataclass(frozen=True)
class Told:
    """What an exchange says, in terms that can be compared."""

    text: str
    calls: tuple[tuple[str, str | None, str], ...]
    stop: str
    usage: tuple[int, int, int, int, int] | None


async def test_every_recorded_exchange_is_understood(tell):
    recorded = recordings("openai-chat")
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    async with replay(recorded) as server:
        model = ChatCompletions(server.url)
        for each in recorded:
            outcome, problem = await _compare(model, each)
            outcomes[outcome] += 1
            if problem:
                wrong.append(f"{each.name} {each.host}: {problem}")
        await model.close()
        assert set(server.calls.values()) == {1}

    tell(f"openai-chat: {len(recorded) - len(wrong)} of {len(recorded)} equal: {dict(outcomes)}")
    assert wrong == []


async def _compare(model: ChatCompletions, exchange: Recording) -> tuple[str, str | None]:
    """How the exchange ended for the adapter, and what is wrong with that."""
    pieces, error = [], None
    try:
        async for piece in model.stream(ModelRequest(CARD, "", (ASKED,), (), 50, exchange.name)):
            pieces.append(piece)
    except ModelError as caught:
        error = caught
    chunks = _chunks(exchange)
    told_inside = any("error" in chunk for chunk in chunks)
    if exchange.status != 200 or told_inside:
        return _compare_error(exchange, error)
    expected = _expected(chunks, whole=not exchange.streamed)
    if error is not None or not isinstance(pieces[-1], Finished):
        return "200", f"{error!r}"
    streamed = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    got = _told(pieces[-1])
    right = got == expected and streamed == expected.text
    outcome = "200" if expected.usage else "200 without usage"
    return outcome, None if right else f"{got} != {expected}, streamed {streamed!r}"


def _compare_error(exchange: Recording, error: ModelError | None) -> tuple[str, str | None]:
    codes = {400: "invalid_request", 404: "unknown_model", 429: "rate_limited", 200: "invalid_request"}
    expected = (codes[exchange.status], exchange.status == 429)
    got = (error.code, error.retryable) if error else None
    return f"error {exchange.status}", None if got == expected else f"{error!r} is not {expected}"


def _chunks(exchange: Recording) -> list[dict[str, Any]]:
    return exchange.events if exchange.streamed else [exchange.answer]


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
            message = choice.get("message" if whole else "delta") or {}
            content = message.get("content") or ""
            parts = content if isinstance(content, list) else [{"text": content}]
            text += "".join(part["text"] for part in parts if "text" in part)
            refusal += message.get("refusal") or ""
            if message.get("function_call"):
                message = {**message, "tool_calls": [{"index": 0, "function": message["function_call"]}]}
            for place, call in enumerate(message.get("tool_calls") or []):
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
    # Some endpoints do not count what they read.
    return Told(text + refusal, told, reason, _counts(usage) if usage and usage["prompt_tokens"] else None)


def _counts(usage: dict[str, Any]) -> tuple[int, int, int, int, int]:
    read = usage.get("prompt_tokens_details") or {}
    written = usage.get("completion_tokens_details") or {}
    cached, to_cache = read.get("cached_tokens") or 0, read.get("cache_write_tokens") or 0
    prompt = usage["prompt_tokens"]
    if cached + to_cache > prompt:
        # Tokens that were written and read count for both.
        prompt += min(cached, to_cache)
    return prompt, usage["completion_tokens"], cached, to_cache, written.get("reasoning_tokens") or 0


def _canonical(arguments: str) -> str:
    return json.dumps(json.loads(arguments), sort_keys=True)


def _told(finished: Finished) -> Told:
    calls = tuple(
        (call.tool, call.provider_id, json.dumps(call.arguments, sort_keys=True))
        for call in finished.message.tool_calls
    )
    used = finished.usage
    counts = used and (used.input, used.output, used.cache_read, used.cache_write_5m, used.reasoning)
    return Told(finished.message.text, calls, finished.stop_reason, counts)
