"""Answers that servers and proxies are known to send beside their protocols: nothing is lost, invented or doubled."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from aiohttp import web

from wayline.contracts.chat import ToolCall
from wayline.llm import Finished, ModelError
from wayline.llm.anthropic import Anthropic
from wayline.llm.openai import OpenAI
from wayline.llm.openai_chat import ChatCompletions

from .cards import card, request, user
from .provider import Provider, Reply, spoken, sse

ADAPTERS: dict[str, Any] = {"anthropic": Anthropic, "openai": OpenAI, "chat": ChatCompletions}
USAGE = {"prompt_tokens": 9, "completion_tokens": 5}
COUNTED = {"input_tokens": 9, "output_tokens": 5}
CALLED = (
    ToolCall(call="1", tool="look", arguments={"at": 1}, provider_id="a"),
    ToolCall(call="2", tool="look", arguments={"at": 2}, provider_id="b"),
)


async def ended(wire: str, body: bytes) -> tuple[str, Finished | ModelError]:
    """What an adapter streams of an answer, and how that ends."""
    async with Provider(Reply([body])) as provider:
        model, pieces = ADAPTERS[wire](provider.url), []
        try:
            async for piece in model.stream(request(user("hi"), model=card(provider=wire))):
                pieces.append(piece)
        except ModelError as error:
            return spoken(pieces)[0], error
        finally:
            await model.close()
    text, [*_, last] = spoken(pieces)
    assert isinstance(last, Finished)
    return text, last


async def finished(wire: str, body: bytes) -> Finished:
    text, last = await ended(wire, body)
    assert isinstance(last, Finished), last
    assert text == last.message.text
    return last


def chunk(finish: Any = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def chat(*chunks: dict[str, Any] | bytes) -> bytes:
    lines = (each if isinstance(each, bytes) else b"data: " + orjson.dumps(each) + b"\n\n" for each in chunks)
    return b"".join(lines) + b"data: [DONE]\n\n"


def text(index: int | None, words: str) -> list[dict[str, Any]]:
    begins = {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "text_delta", "text": words}
    return [begins, {"type": "content_block_delta", "index": index, "delta": delta}]


def use(index: int | None, wire_id: str, *pieces: str) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": wire_id, "name": "look", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    begins = {"type": "content_block_start", "index": index, "content_block": block}
    return [begins, *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)]


def messages(stop: str | None, *events: dict[str, Any]) -> bytes:
    last = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": COUNTED}
    return sse({"type": "message_start", "message": {}}, *events, last, {"type": "message_stop"})


def message(words: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content, **more}


def call(wire_id: str, at: int, **more: Any) -> dict[str, Any]:
    written = {"name": "look", "arguments": f'{{"at": {at}}}', "status": "completed"}
    return {"id": f"fc_{wire_id}", "type": "function_call", "call_id": wire_id, **written, **more}


def response(*events: dict[str, Any], name: str = "completed", **more: Any) -> bytes:
    told = {"status": name, "usage": COUNTED, **more}
    return sse(*events, {"type": f"response.{name}", "response": told})


def item(kind: str, at: int | None, whole: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": at, "item": whole}


def words(at: int | None, delta: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": at, "delta": delta}


HALVES = {
    "chat": (chat(chunk(content="half")).removesuffix(b"data: [DONE]\n\n"), b"data: [DONE]\n\n"),
    "anthropic": (sse({"type": "message_start", "message": {}}, *text(0, "half")), sse({"type": "message_stop"})),
    "openai": (sse(words(0, "half")), response(output=[message("half")])),
}
ERRORS = {
    "without a type": b'data: {"error": {"message": "no room", "type": "overloaded_error"}}\n\n',
    "by the event's name": b'event: error\ndata: {"message": "no room", "type": "overloaded_error"}\n\n',
    "by the event's name, in words": b"event: error\ndata: no room\n\n",
    "by a later name": b'id: 7\nevent: error\ndata: {"message": "no room"}\n\n',
}
ERRORS_OF_CHAT = {
    "as vLLM did": b'data: {"object": "error", "message": "no room", "code": 503}\n\n',
    "as llama.cpp did": b'error: {"code": 503, "message": "no room"}\n\n',
    "by its code alone": b'data: {"message": "no room", "code": "overloaded"}\n\n',
}


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        *(pytest.param(wire, ERRORS[form], id=f"{wire} {form}") for wire in HALVES for form in ERRORS),
        *(pytest.param("chat", ERRORS_OF_CHAT[form], id=f"chat {form}") for form in ERRORS_OF_CHAT),
    ],
)
async def test_no_half_is_whole_after_an_error_of_any_form(wire: str, error: bytes):
    half, end = HALVES[wire]

    said, last = await ended(wire, half + error + end)

    assert said == "half"
    assert isinstance(last, ModelError)
    assert "no room" in str(last)
    assert (last.retryable, last.billable) == (True, True)


@pytest.mark.parametrize("wire", HALVES)
async def test_no_half_is_whole_after_an_error_without_words(wire: str):
    half, end = HALVES[wire]

    _, last = await ended(wire, half + b"event: error\ndata:\n\n" + end)

    assert isinstance(last, ModelError)
    assert (last.retryable, last.billable) == (True, True)


@pytest.mark.parametrize("wire", ADAPTERS)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<!DOCTYPE html><title>Sign in to the proxy</title>", "stream_cut"),
        (b"upstream connect error, sign in to the proxy", "stream_cut"),
        (b'{"detail": "sign in to the proxy"}', "stream_cut"),
        (b'{"error": {"message": "sign in to the proxy", "code": "insufficient_quota"}}', "spend_cap"),
        (b'{"message": "sign in to the proxy", "code": 429}', "rate_limited"),
    ],
)
async def test_a_200_that_is_no_answer_says_what_it_is(wire: str, body: bytes, code: str):
    _, last = await ended(wire, body)

    assert isinstance(last, ModelError)
    assert last.code == code
    assert "ign in to the proxy" in str(last)


@pytest.mark.parametrize("wire", HALVES)
async def test_a_carriage_return_alone_ends_a_line(wire: str):
    whole = {
        "chat": chat(chunk(content="well"), chunk("stop"), {"choices": [], "usage": USAGE}),
        "anthropic": messages("end_turn", *text(0, "well")),
        "openai": response(words(0, "well"), output=[message("well")]),
    }
    last = await finished(wire, whole[wire].replace(b"\n", b"\r"))

    assert (last.message.text, last.stop_reason) == ("well", "end")
    assert last.usage is not None


async def test_a_message_without_blocks_and_without_a_stop_is_no_answer():
    _, last = await ended("anthropic", sse({"type": "message_start", "message": {}}, {"type": "message_stop"}))

    assert isinstance(last, ModelError)
    assert (last.code, last.retryable) == ("stream_cut", True)


LOOK_1 = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
TOLD = {
    "a whole message beside the last piece": (
        [chunk(content="we"), chunk(content="ll"), {"choices": [{"delta": {}, "message": {"content": "well"}}]}],
        "end",
    ),
    "after the end": ([chunk("stop", content="well"), b"data: [DONE]\n\n", chunk(content=" more")], "end"),
    "a choice numbered in text": ([{"choices": [{"index": "0", "delta": {"content": "well"}}]}], "end"),
    "one choice, numbered 1": ([{"choices": [{"index": 1, "delta": {"content": "well"}}]}], "end"),
    "no choice among the choices": ([{"choices": [None]}, chunk(content="well")], "end"),
    "texts for parts": ([chunk(content=["we", {"text": "ll"}, None, {"type": "image_url", "image_url": {}}])], "end"),
    "one part": ([chunk(content={"type": "text", "text": "well"})], "end"),
    "a tab as it is": ([b'data: {"choices": [{"delta": {"content": "well", "x": "a\tb"}}]}\n\n'], "end"),
    "cut, then stopped": ([chunk(content="well"), chunk("length"), chunk("stop")], "max_tokens"),
    "no calls": ([chunk(content="well", tool_calls=[None])], "end"),
}


@pytest.mark.parametrize(("chunks", "stop"), TOLD.values(), ids=TOLD)
async def test_the_text_of_an_odd_chat_is_read_once(chunks: list[Any], stop: str):
    last = await finished("chat", chat(*chunks, {"choices": [], "usage": USAGE}))

    assert (last.message.text, last.stop_reason) == ("well", stop)
    assert last.usage is not None


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning": {"content": "hm"}},
        {"reasoning_content": ["h", {"text": "m"}]},
        {"content": [{"type": "thinking", "thinking": "hm"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    ],
)
async def test_thinking_of_any_shape_is_kept(delta: dict[str, Any]):
    last = await finished("chat", chat(chunk(**delta), chunk("stop", content="well")))

    assert (last.message.text, last.message.thinking) == ("well", "hm")


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([LOOK_1, LOOK_1], id="once more at the end"),
        pytest.param(
            [{**LOOK_1, "function": {"name": "lo"}}, {"index": 0, "function": LOOK_1["function"]}],
            id="its name as far as it is known",
        ),
        pytest.param([{"index": 0, "id": "a", "name": "look", "arguments": {"at": 1}}], id="without a function"),
    ],
)
async def test_one_call_that_is_told_oddly_is_made_once(pieces: list[dict[str, Any]]):
    chunks = [chunk(tool_calls=[piece]) for piece in pieces]
    last = await finished("chat", chat(*chunks, chunk("tool_calls"), {"choices": [], "usage": USAGE}))

    assert last.message.tool_calls == CALLED[:1]


async def test_a_call_may_come_alone_and_its_id_as_a_number():
    last = await finished("chat", chat(chunk("tool_calls", tool_calls={**LOOK_1, "id": 7})))

    [made] = last.message.tool_calls
    assert (made.arguments, made.provider_id) == ({"at": 1}, "7")


async def test_text_and_calls_may_come_as_two_choices_of_one_number():
    choices = [{"message": {"content": "well"}}, {"message": {"tool_calls": [LOOK_1]}, "finish_reason": "tool_calls"}]
    last = await finished("chat", orjson.dumps({"choices": choices, "usage": USAGE}))

    assert (last.message.text, last.message.tool_calls, last.stop_reason) == ("well", CALLED[:1], "tools")


async def test_usage_is_found_within_a_choice():
    last = await finished("chat", chat({"choices": [{"delta": {"content": "well"}, "usage": USAGE}]}))

    assert last.usage is not None
    assert last.usage.total == 14


@pytest.mark.parametrize("indexes", [(0, 0, 0), (None, None, None), (0, 0, 1), (4, 7, 9)])
async def test_blocks_of_any_numbers_are_kept_apart(indexes: tuple[Any, Any, Any]):
    one, two, three = indexes
    events = [*text(one, "well"), *use(two, "a", '{"at"', ": 1}"), *use(three, "b", '{"at": 2}')]

    last = await finished("anthropic", messages("tool_use", *events))

    assert (last.message.text, last.message.tool_calls) == ("well", CALLED)


async def test_a_block_that_begins_twice_is_one():
    begins, *deltas = use(0, "a", '{"at": 1}')
    last = await finished("anthropic", messages("tool_use", begins, begins, *deltas))

    assert last.message.tool_calls == CALLED[:1]


async def test_a_whole_message_may_hold_its_text_bare():
    body = {"type": "message", "content": "well", "stop_reason": "end_turn", "usage": COUNTED}
    last = await finished("anthropic", orjson.dumps(body))

    assert last.message.text == "well"


ITEMS = [
    item("done", None, message("well", id="m")),
    item("done", None, call("a", 1)),
    item("done", None, call("b", 2)),
]
OUTPUT = [message("well", id="m"), call("a", 1), call("b", 2)]
NUMBERED = {
    "all 0": [{**each, "output_index": 0} for each in ITEMS],
    "from 1": [{**each, "output_index": at} for at, each in enumerate(ITEMS, 1)],
    "not": ITEMS,
    "with other ids": [item("done", at, {**each, "id": f"x{at}"}) for at, each in enumerate(OUTPUT)],
}


@pytest.mark.parametrize("events", NUMBERED.values(), ids=NUMBERED)
@pytest.mark.parametrize("output", [OUTPUT, []], ids=["told again", "not told again"])
async def test_items_of_any_numbers_are_each_taken_once(events: list[dict[str, Any]], output: list[dict[str, Any]]):
    first = words(events[0]["output_index"], "well")
    last = await finished("openai", response(first, *events, output=output))

    assert (last.message.text, last.message.tool_calls) == ("well", CALLED)


@pytest.mark.parametrize("kind", ["delta", "done"])
async def test_arguments_that_only_their_own_events_tell_are_read(kind: str):
    named = {"type": f"response.function_call_arguments.{kind}", "output_index": 0}
    events = [
        part
        for wire_id, at in (("a", 1), ("b", 2))
        for part in (
            item("added", 0, call(wire_id, at, arguments="", status="in_progress")),
            {**named, {"delta": "delta", "done": "arguments"}[kind]: f'{{"at": {at}}}'},
        )
    ]

    last = await finished("openai", response(*events))

    assert last.message.tool_calls == CALLED


async def test_arguments_whose_end_repeats_nothing_are_kept():
    begun = {"type": "function_call", "call_id": "a", "name": "look"}
    piece = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"at": 1}'}
    end = {"type": "response.function_call_arguments.done", "output_index": 0}

    last = await finished("openai", response(item("added", 0, begun), piece, end))

    assert last.message.tool_calls == CALLED[:1]


@pytest.mark.parametrize(
    ("told", "stop"),
    [
        ({"name": "incomplete"}, "unknown"),
        ({"name": "incomplete", "incomplete_details": None}, "unknown"),
        ({"status": "expired"}, "unknown"),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, "max_tokens"),
        ({"status": None}, "end"),
    ],
)
async def test_a_response_is_whole_only_where_all_says_so(told: dict[str, Any], stop: str):
    _, last = await ended("openai", response(words(0, "well"), output=[message("well")], **told))

    assert isinstance(last, Finished)
    assert last.stop_reason == stop


async def test_a_response_in_one_piece_needs_no_status_and_no_parts():
    body = {"output": [{"type": "message", "role": "assistant", "content": "well"}], "usage": COUNTED}
    last = await finished("openai", orjson.dumps(body))

    assert (last.message.text, last.stop_reason) == ("well", "end")


@pytest.mark.parametrize("wire", ADAPTERS)
async def test_a_redirect_that_drops_the_request_is_named(wire: str):
    async def moved(_: web.Request) -> web.Response:
        return web.Response(status=301, headers={"Location": "/moved"})

    app = web.Application()
    app.router.add_post("/{path:.*}", moved)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    model = ADAPTERS[wire](f"http://127.0.0.1:{runner.addresses[0][1]}")
    with pytest.raises(ModelError, match=r"leads on to http://127.0.0.1:\d+/moved: use that one; 40"):
        _ = [piece async for piece in model.stream(request(user("hi"), model=card(provider=wire)))]
    await model.close()
    await runner.cleanup()


@pytest.mark.parametrize("name_lines", [True, False])
async def test_messages_without_empty_lines_between_events_are_read(name_lines: bool):
    whole = messages("tool_use", *text(0, "Hi"), *use(1, "a", '{"at"', ": 1}"))
    lines = [line for line in whole.split(b"\n") if line and (name_lines or not line.startswith(b"event:"))]

    last = await finished("anthropic", b"\n".join(lines) + b"\n")

    assert (last.message.text, last.message.tool_calls) == ("Hi", CALLED[:1])
    assert last.usage is not None and last.usage.output == 5


async def test_usage_by_the_names_of_responses_is_counted():
    last = await finished("chat", chat(chunk(content="Hi"), chunk("stop"), {"choices": [], "usage": COUNTED}))

    assert last.usage is not None and (last.usage.input, last.usage.output) == (9, 5)
