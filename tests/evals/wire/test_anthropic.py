"""Recorded Messages traffic through our adapter: what it makes of each reply, against what the wire says."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from wayline.contracts.models import ModelCard
from wayline.llm import Finished, ModelError, TextDelta
from wayline.llm.anthropic import Anthropic
from wayline.llm.anthropic.reply import Reply

from ..recordings import anthropic_streams, of, recordings, replay
from .expected import Expected, comparable, request

CARD = ModelCard(provider="anthropic", model="claude-sonnet-5-5", tier="standard")
STOPS = {
    "end_turn": "end",
    "tool_use": "tools",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refused",
    "pause_turn": "paused",
    "model_context_window_exceeded": "context_full",
}


def whole(body: dict[str, Any]) -> Expected:
    blocks = body["content"]
    return Expected(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        calls=[(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"],
        stop=STOPS[body["stop_reason"]],
        tokens=tokens(body["usage"]),
    )


def streamed(events: list[dict[str, Any]]) -> Expected:
    starts = {e["index"]: e["content_block"] for e in events if e["type"] == "content_block_start"}
    deltas = [(e["index"], e["delta"]) for e in events if e["type"] == "content_block_delta"]
    written = {at: "".join(d["partial_json"] for n, d in deltas if n == at and "partial_json" in d) for at in starts}
    [begun] = [e["message"]["usage"] for e in events if e["type"] == "message_start"]
    [ended] = [e for e in events if e["type"] == "message_delta"]
    return Expected(
        text="".join(
            block.get("text", "") + "".join(d["text"] for n, d in deltas if n == at and d["type"] == "text_delta")
            for at, block in starts.items()
            if block["type"] == "text"
        ),
        calls=[(block["name"], arguments(written[at])) for at, block in starts.items() if block["type"] == "tool_use"],
        stop=STOPS[ended["delta"]["stop_reason"]],
        tokens=tokens(begun | {key: value for key, value in ended["usage"].items() if value is not None}),
    )


def put_together(body: dict[str, Any]) -> Finished:
    """What is made of a body that was not streamed: of the events that say the same."""
    reply = Reply(provider="anthropic", model="m")
    reply.take({"type": "message_start", "message": body})
    for at, block in enumerate(body["content"]):
        reply.take({"type": "content_block_start", "index": at, "content_block": block})
    reply.take({"type": "message_delta", "delta": {"stop_reason": body["stop_reason"]}, "usage": body["usage"]})
    return reply.finished()


def arguments(text: str) -> Any:
    try:
        return orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {"_unreadable": text}


def tokens(usage: dict[str, Any]) -> dict[str, int]:
    read, written = (usage.get(f"cache_{each}_input_tokens") or 0 for each in ("read", "creation"))
    return {
        "input": usage["input_tokens"] + read + written,
        "output": usage["output_tokens"],
        "cache_read": read,
        "cache_write": written,
        "reasoning": (usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
    }


async def test_every_recorded_stream_becomes_what_the_wire_says(tell):
    recorded = [*of(recordings("anthropic"), streamed=True), *anthropic_streams()]
    wrong: list[str] = []
    async with replay(recorded) as server:
        model = Anthropic(server.url)
        for each in recorded:
            try:
                *pieces, last = [piece async for piece in model.stream(request(CARD, each))]
            except Exception as error:
                wrong.append(f"{each.name}: {error!r}")
                continue
            deltas = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
            if comparable(last) != streamed(each.events) or deltas != last.message.text:
                wrong.append(f"{each.name}: {comparable(last)} != {streamed(each.events)}")
        await model.close()
        assert set(server.calls.values()) == {1}

    tell(f"anthropic streams: {len(recorded) - len(wrong)} of {len(recorded)} equal")
    assert wrong == []


def test_every_recorded_message_becomes_what_the_wire_says(tell):
    recorded = list(of(recordings("anthropic"), streamed=False, ends=("/messages",)))
    wrong = [each.name for each in recorded if comparable(put_together(each.answer)) != whole(each.answer)]

    tell(f"anthropic messages: {len(recorded) - len(wrong)} of {len(recorded)} equal")
    assert wrong == []


async def test_a_recorded_refusal_is_not_tried_again(tell):
    recorded = [each for each in recordings("anthropic") if each.status != 200]
    async with replay(recorded) as server:
        model = Anthropic(server.url)
        for each in recorded:
            with pytest.raises(ModelError) as caught:
                _ = [piece async for piece in model.stream(request(CARD, each))]
            assert (caught.value.code, caught.value.retryable) == ("invalid_request", False)
        await model.close()

    tell(f"anthropic errors: {len(recorded)} of {len(recorded)}")
    assert server.calls == {each.name: 1 for each in recorded}
