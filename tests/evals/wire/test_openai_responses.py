"""Recorded Responses traffic through our adapter: what it makes of each reply, against what the wire says."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from wayline.contracts.models import ModelCard
from wayline.llm import Finished, ModelError, TextDelta
from wayline.llm.openai import OpenAI
from wayline.llm.openai.reply import Reply

from ..recordings import of, recordings, replay
from .expected import Expected, comparable, request

CARD = ModelCard(provider="openai", model="gpt-6-sol", tier="standard")
OTHER_CALLS = ("/compact", "/input_tokens")
UNFINISHED = ("queued", "in_progress")
CODES = {"model_not_found": "unknown_model"}


def whole(body: dict[str, Any]) -> Expected:
    calls = [(i["name"], orjson.loads(i["arguments"] or "{}")) for i in body["output"] if i["type"] == "function_call"]
    used = body["usage"]
    read, written = (used.get(f"{each}_tokens_details") or {} for each in ("input", "output"))
    return Expected(
        text="".join(part["text"] for i in body["output"] if i["type"] == "message" for part in i["content"]),
        calls=calls,
        stop="tools" if calls else "end",
        tokens=(used["input_tokens"] or None)
        and {
            "input": used["input_tokens"],
            "output": used["output_tokens"],
            "cache_read": read.get("cached_tokens") or 0,
            "cache_write": read.get("cache_write_tokens") or 0,
            "reasoning": written.get("reasoning_tokens") or 0,
        },
    )


def put_together(body: dict[str, Any]) -> Finished:
    """What is made of a body that was not streamed: its last event would hold all of it."""
    reply = Reply(provider="openai", model="m")
    reply.take({"type": "response.completed", "response": body})
    return reply.finished()


async def test_every_recorded_stream_becomes_what_the_wire_says(tell):
    recorded = list(of(recordings("openai-responses"), streamed=True))
    wrong: list[str] = []
    async with replay(recorded) as server:
        model = OpenAI(server.url)
        for each in recorded:
            [last_event] = [e for e in each.events if e["type"] == "response.completed"]
            written = "".join(e["delta"] for e in each.events if e["type"] == "response.output_text.delta")
            try:
                *pieces, last = [piece async for piece in model.stream(request(CARD, each))]
            except Exception as error:
                wrong.append(f"{each.name}: {error!r}")
                continue
            deltas = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
            assert isinstance(last, Finished)
            if comparable(last) != whole(last_event["response"]) or deltas != written:
                wrong.append(f"{each.name}: {comparable(last)} != {whole(last_event['response'])}")
        await model.close()
        assert set(server.calls.values()) == {1}

    tell(f"openai-responses streams: {len(recorded) - len(wrong)} of {len(recorded)} equal")
    assert wrong == []


def test_every_recorded_response_becomes_what_the_wire_says(tell):
    recorded = [
        each for each in of(recordings("openai-responses"), streamed=False) if not each.path.endswith(OTHER_CALLS)
    ]
    whole_ones = [each for each in recorded if each.answer["status"] not in UNFINISHED]
    wrong = [each.name for each in whole_ones if comparable(put_together(each.answer)) != whole(each.answer)]

    tell(f"openai-responses bodies: {len(whole_ones) - len(wrong)} of {len(whole_ones)} equal")
    assert wrong == []
    for each in set(map(id, recorded)) - set(map(id, whole_ones)):
        [background] = [one for one in recorded if id(one) == each]
        with pytest.raises(ModelError):
            put_together(background.answer)


async def test_recorded_refusals_are_named_and_not_tried_again(tell):
    recorded = [each for each in recordings("openai-responses") if each.status != 200]
    async with replay(recorded) as server:
        model = OpenAI(server.url)
        for each in recorded:
            with pytest.raises(ModelError) as caught:
                _ = [piece async for piece in model.stream(request(CARD, each))]
            code = CODES.get(each.answer["error"]["code"], "invalid_request")
            assert (caught.value.code, caught.value.retryable) == (code, False)
        await model.close()

    tell(f"openai-responses errors: {len(recorded)} of {len(recorded)}")
    assert server.calls == {each.name: 1 for each in recorded}
