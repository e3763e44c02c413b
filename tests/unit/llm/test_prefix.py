"""A prompt only ever grows: what was sent once is sent again, byte for byte, whatever comes after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts.chat import AssistantMessage, ChatMessage, Verbatim
from wayline.llm import ModelRequest, openai_chat
from wayline.llm.anthropic import request as anthropic_request
from wayline.llm.openai import request as openai_request
from wayline.testkit.walks import examples

from .cards import LOOK, MARKS, calling, card, note, request, result, user

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s=="}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}

Body = Callable[[ModelRequest], dict[str, Any]]
MARKING: dict[str, Body] = {"anthropic": anthropic_request.body, "openai": openai_request.body}
ADAPTERS: dict[str, Body] = {**MARKING, "chat": lambda request: openai_chat.build_body(request)[0]}

words = st.sampled_from(["a", "b", "", "\n"])
wire_ids = st.sampled_from(["x", "y", None])


@st.composite
def answers(draw: st.DrawFn) -> AssistantMessage:
    answer = calling(*draw(st.lists(wire_ids, max_size=3)), text=draw(words))
    provider = draw(st.sampled_from([None, "anthropic", "openai", "chat"]))
    if provider is None:
        return answer
    blocks = (THOUGHT,) if provider == "anthropic" else (SEALED,)
    kept = Verbatim(provider=provider, model=draw(st.sampled_from(["claude", "other"])), blocks=blocks)
    return AssistantMessage(text=answer.text, verbatim=kept)


@st.composite
def histories(draw: st.DrawFn) -> list[list[ChatMessage]]:
    """What was said before each answer, and the answer; the last one is still to come."""
    steps: list[list[ChatMessage]] = []
    asked: tuple[str, ...] = ()
    for _ in range(draw(st.integers(1, 6))):
        results = [result(call, "ok") for call in asked if draw(st.booleans())]
        others = draw(
            st.lists(st.builds(user, words) | st.builds(note, words), min_size=0 if results else 1, max_size=3)
        )
        answer = draw(answers())
        steps.append([*draw(st.permutations([*results, *others])), answer])
        asked = tuple(call.call for call in answer.tool_calls)
    return steps


def sent(messages: list[ChatMessage], breakpoints: tuple[int, ...], *, adapter: str, **more: Any) -> dict[str, Any]:
    model = card(provider=adapter, cache=MARKS, **more)
    return ADAPTERS[adapter](request(*messages, model=model, tools=(LOOK,), breakpoints=breakpoints))


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        marks = ("cache_control", "prompt_cache_breakpoint")
        return {key: unmarked(each) for key, each in value.items() if key not in marks}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("adapter", ADAPTERS)
@given(histories(), st.booleans(), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_each_request_extends_the_one_before_it_apart_from_the_markers(adapter, history, takes_system, data):
    before = None
    key = "input" if adapter == "openai" else "messages"
    messages: list[ChatMessage] = []
    for step in history:
        messages += step[:-1]
        marks = tuple(data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=5)))
        now = unmarked(sent(messages, marks, adapter=adapter, system_messages=takes_system))
        spoken = now.pop(key)
        if before is not None:
            rest, previous = before
            assert orjson.dumps(now) == orjson.dumps(rest)
            assert [orjson.dumps(each) for each in spoken[: len(previous)]] == [orjson.dumps(each) for each in previous]
            assert len(spoken) > len(previous)
        before = now, spoken
        messages.append(step[-1])


@given(histories(), st.booleans())
@settings(max_examples=examples(80), deadline=None)
def test_messages_keep_the_providers_rules_whatever_the_history(history, takes_system):
    before = [message for step in history for message in step][:-1]
    messages = sent(before, (), adapter="anthropic", system_messages=takes_system)["messages"]

    roles = [each["role"] for each in messages]
    for here, role in enumerate(roles):
        if role == "system":
            assert roles[here - 1] == "user" and (here + 1 == len(roles) or roles[here + 1] == "assistant")
        calls = [block["id"] for block in messages[here]["content"] if block["type"] == "tool_use"]
        if calls:
            results = messages[here + 1]["content"][: len(calls)]
            assert sorted(block["tool_use_id"] for block in results) == sorted(calls)
    ids = [block["id"] for each in messages for block in each["content"] if block["type"] == "tool_use"]
    assert roles[0] == "user" and len(ids) == len(set(ids))
    assert all(block.get("text", "x").strip() for each in messages for block in each["content"])


@given(histories())
@settings(max_examples=examples(40), deadline=None)
def test_equal_requests_have_equal_bytes_and_at_most_four_markers(history):
    before = [message for step in history for message in step][:-1]
    for adapter in MARKING:
        one, two = (orjson.dumps(sent(before, tuple(range(len(before))), adapter=adapter)) for _ in range(2))
        assert one == two
        assert 1 <= one.count(b'"cache_control"') + one.count(b'"prompt_cache_breakpoint"') <= 4
