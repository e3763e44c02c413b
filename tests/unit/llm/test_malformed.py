"""A provider's answer may have anything in it: it is read, or it is a ModelError that says so."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from wayline.contracts.chat import ToolCall
from wayline.llm import Finished, Model, ModelError, ModelRequest
from wayline.llm.anthropic import Anthropic
from wayline.llm.openai import OpenAI
from wayline.llm.openai_chat import ChatCompletions

from . import test_anthropic as messages
from . import test_openai as responses
from .cards import card, request, user
from .provider import Provider, Reply, sse

ODD: tuple[Any, ...] = (None, True, 7, -1, 1e300, 2**63, "x", [], [None], ["x"], {}, {"x": 1}, [[]], {"type": 3})
MUTATIONS = 150
CHAT = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "well", "reasoning": "hm"}}]},
    {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "tool_calls": [
                        {"index": 0, "id": "a", "function": {"name": "look", "arguments": '{"at": 1}'}, "extra": {}}
                    ]
                },
            }
        ]
    },
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {}}},
]
WHOLE: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "anthropic": (
        Anthropic,
        [
            messages.begun(),
            *messages.block(0, messages.THOUGHT),
            *messages.text(1, "well"),
            *messages.tool(2, "a", '{"at": 1}'),
            *messages.ended("tool_use"),
        ],
    ),
    "openai": (
        OpenAI,
        [
            responses.BEGUN,
            responses.done(0, responses.thought()),
            *responses.text(1, "well"),
            *responses.tool(2, "a", '{"at": 1}'),
            responses.ended(),
        ],
    ),
    "chat": (ChatCompletions, CHAT),
}


def asking(provider: str) -> ModelRequest:
    return request(user("hi"), model=card(provider=provider, reasoning="effort"))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a JSON value: what holds it, and where."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield value, key
        yield from places(part)


def spoiled(events: list[dict[str, Any]], *, seed: int) -> list[dict[str, Any]]:
    """The events with one or two of their parts put wrong."""
    chance, events = random.Random(seed), copy.deepcopy(events)
    for _ in range(chance.choice((1, 1, 2))):
        holder, key = chance.choice(list(places(events)))
        holder[key] = chance.choice(ODD)
    return events


def written(provider: str, events: list[Any]) -> bytes:
    if provider == "chat":
        return b"".join(b"data: " + orjson.dumps(each) + b"\n\n" for each in events) + b"data: [DONE]\n\n"
    named = [each if isinstance(each, dict) and "type" in each else {"type": "x", "is": each} for each in events]
    return sse(*named)


async def ending(model: Model, asked: ModelRequest) -> Finished | ModelError:
    try:
        *_, last = [piece async for piece in model.stream(asked)]
    except ModelError as error:
        return error
    assert isinstance(last, Finished)
    return last


@pytest.mark.parametrize("provider", WHOLE)
async def test_a_malformed_answer_is_read_or_becomes_a_model_error(provider: str):
    adapter, events = WHOLE[provider]
    bodies = [written(provider, events)] + [written(provider, spoiled(events, seed=n)) for n in range(MUTATIONS)]
    async with Provider(*(Reply([body]) for body in bodies)) as server:
        model = adapter(server.url)
        ended = [await ending(model, asking(provider)) for _ in bodies]
        await model.close()

    whole = ended[0]
    assert isinstance(whole, Finished)
    assert whole.message.tool_calls == (ToolCall(call="1", tool="look", arguments={"at": 1}, provider_id="a"),)
    codes = {each.code for each in ended if isinstance(each, ModelError)}
    assert "unreadable" in codes
    assert all(each.retryable for each in ended if isinstance(each, ModelError) and each.code == "unreadable")


@pytest.mark.parametrize("provider", WHOLE)
async def test_a_tool_name_that_is_no_text_is_unreadable_and_billable(provider: str):
    adapter, events = WHOLE[provider]
    body = written(provider, events).replace(b'"name":"look"', b'"name":7')
    async with Provider(Reply([body])) as server:
        model = adapter(server.url)
        error = await ending(model, asking(provider))
        await model.close()

    assert isinstance(error, ModelError)
    assert (error.code, error.retryable, error.billable) == ("unreadable", True, True)


@pytest.mark.parametrize("provider", WHOLE)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_200_with_an_empty_body_is_asked_again(provider: str, kind: str):
    adapter, _ = WHOLE[provider]
    async with Provider(Reply([], headers={"content-type": kind})) as server:
        model = adapter(server.url)
        error = await ending(model, asking(provider))
        await model.close()

    assert isinstance(error, ModelError)
    assert (error.code, error.retryable) == ("stream_cut", True)


@pytest.mark.parametrize("body", [b"data: [DONE]\n\n", b'data: {"choices": []}\n\ndata: [DONE]\n\n'])
async def test_chat_completions_without_any_choice_is_no_answer(body: bytes):
    async with Provider(Reply([body])) as server:
        model = ChatCompletions(server.url)
        error = await ending(model, asking("chat"))
        await model.close()

    assert isinstance(error, ModelError)
    assert (error.code, error.retryable, error.billable) == ("stream_cut", True, True)


@pytest.mark.parametrize("provider", WHOLE)
@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'{"error": 5}', b'{"error": {"message": {}}}', b"<html>", b'"x"']
)
async def test_an_error_of_any_form_is_a_model_error(provider: str, body: bytes):
    adapter, _ = WHOLE[provider]
    async with Provider(Reply([body], status=400, headers={"content-type": "application/json"})) as server:
        model = adapter(server.url)
        error = await ending(model, asking(provider))
        await model.close()

    assert isinstance(error, ModelError)
    assert error.code == "invalid_request"


@pytest.mark.parametrize("count", [1e300, "12", -1, 0, True, [1]])
async def test_a_count_that_no_call_can_have_leaves_the_usage_unknown(count: Any):
    counted = {"prompt_tokens": count, "completion_tokens": 2}
    chunks = [CHAT[0], {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": counted}]
    async with Provider(Reply([written("chat", chunks)])) as server:
        model = ChatCompletions(server.url)
        finished = await ending(model, asking("chat"))
        await model.close()

    assert isinstance(finished, Finished)
    assert (finished.message.text, finished.usage) == ("well", None)
