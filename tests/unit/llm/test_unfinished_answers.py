"""Every way an answer can stop, on every wire: nothing runs that the model did not finish, nothing cut is whole."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from wayline.llm import Finished, Model, ModelError
from wayline.llm.anthropic import Anthropic
from wayline.llm.json_protocol import JsonProtocol
from wayline.llm.openai import OpenAI
from wayline.llm.openai_chat import ChatCompletions

from .cards import card, request, user
from .provider import Provider, Reply, sse

CALLS = {
    "complete": '{"at": "here"}',
    "open string": '{"at": "he',
    "open object": '{"at": "here", "on": 1',
    "spelled badly and open": "{'at': 'here',",
    "empty": "",
}
"""What the last call's arguments are when the answer stops; a call before it is always whole."""
FIRST = {"at": "there"}
ENDS = frozenset({"end", "tools"})
"""The stops that say that the message is whole."""

WORDS: dict[str, dict[str, str | None]] = {
    "anthropic": {
        "tool_use": "tools",
        "end_turn": "tools",
        "max_tokens": "max_tokens",
        "stop_sequence": "stop_sequence",
        "refusal": "refused",
        "pause_turn": "paused",
        "model_context_window_exceeded": "context_full",
        "something_new": "unknown",
        "error": None,
    },
    "openai": {
        "completed": "tools",
        "max_output_tokens": "max_tokens",
        "content_filter": "refused",
        "something_new": "unknown",
        "failed": None,
    },
    "chat": {
        "tool_calls": "tools",
        "function_call": "tools",
        "stop": "tools",
        "length": "max_tokens",
        "model_length": "max_tokens",
        "MAX_TOKENS": "max_tokens",
        "max_tokens": "max_tokens",
        "content_filter": "refused",
        "something_new": "unknown",
        "error": None,
    },
    "json in text": {
        "stop": "tools",
        "length": "max_tokens",
        "content_filter": "refused",
        "something_new": "unknown",
        "error": None,
    },
}
"""By wire, each word for a stop, and what it means; None: the call has failed and is to be made again."""


def anthropic(word: str, *arguments: str, text: str = "") -> bytes:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": {"input_tokens": 9}}}]
    if text:
        events.append({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}})
    for at, written in enumerate(arguments, 1):
        start = {"type": "tool_use", "id": f"t{at}", "name": "look", "input": {}}
        events.append({"type": "content_block_start", "index": at, "content_block": start})
        delta = {"type": "input_json_delta", "partial_json": written}
        events.append({"type": "content_block_delta", "index": at, "delta": delta})
    ended = {"type": "message_delta", "delta": {"stop_reason": word}, "usage": {"output_tokens": 5}}
    return sse(*events, ended, {"type": "message_stop"})


def openai(word: str, *arguments: str, text: str = "") -> bytes:
    items: list[dict[str, Any]] = []
    if text:
        items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
    for at, written in enumerate(arguments, 1):
        items.append({"type": "function_call", "call_id": f"t{at}", "name": "look", "arguments": written})
    status = word if word in ("completed", "failed") else "incomplete"
    response: dict[str, Any] = {"status": status, "output": items, "usage": {"input_tokens": 9, "output_tokens": 5}}
    if status == "incomplete":
        response["incomplete_details"] = {"reason": word}
    return sse({"type": f"response.{status}", "response": response})


def chat(word: str, *arguments: str, text: str = "") -> bytes:
    calls = [
        {"index": at, "id": f"t{at}", "function": {"name": "look", "arguments": written}}
        for at, written in enumerate(arguments)
    ]
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": text, "tool_calls": calls}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": word}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}},
    ]
    return b"".join(b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def in_text(word: str, *arguments: str, text: str = "") -> bytes:
    if not arguments:
        return chat(word, text=text)
    calls = [f'{{"tool": "look", "parameters": {written}' for written in arguments]
    body = f'{{"action": "tool", "tool_calls": [{"}, ".join(calls)}'
    return chat(word, text=body + ("}]}" if arguments[-1] == CALLS["complete"] else ""))


def spoken(provider: Any) -> Model:
    return JsonProtocol(ChatCompletions(provider))


WIRES: dict[str, tuple[Any, Any]] = {
    "anthropic": (Anthropic, anthropic),
    "openai": (OpenAI, openai),
    "chat": (ChatCompletions, chat),
    "json in text": (spoken, in_text),
}


async def answered(wire: str, body: bytes) -> Finished | ModelError:
    adapter, _ = WIRES[wire]
    provider = {"json in text": "chat"}.get(wire, wire)
    async with Provider(Reply([body])) as server:
        model = adapter(server.url)
        try:
            *_, finished = [piece async for piece in model.stream(request(user("hi"), model=card(provider=provider)))]
        except ModelError as error:
            return error
        finally:
            await model.close()
    assert isinstance(finished, Finished)
    return finished


def cases() -> list[Any]:
    return [
        pytest.param(wire, word, state, id=f"{wire}-{word}-{state}")
        for wire, words in WORDS.items()
        for word in words
        for state in CALLS
        if not (wire == "json in text" and state == "empty")
    ]


@pytest.mark.parametrize(("wire", "word", "state"), cases())
async def test_no_call_runs_that_the_model_did_not_finish(wire: str, word: str, state: str):
    write, meant = WIRES[wire][1], WORDS[wire][word]
    ended = await answered(wire, write(word, orjson.dumps(FIRST).decode(), CALLS[state]))

    if meant is None:
        assert isinstance(ended, ModelError) and ended.retryable and ended.billable
        return
    assert isinstance(ended, Finished)
    assert ended.stop_reason == meant
    if meant == "refused":
        assert ended.message.tool_calls == ()
        return
    first, last = ended.message.tool_calls
    assert first.arguments == FIRST
    finished = meant in ENDS and state in ("complete", "empty")
    assert (
        last.arguments == ({"at": "here"} if state == "complete" else {})
        if finished
        else "_unreadable" in last.arguments
    )


@pytest.mark.parametrize(("wire", "word"), [(wire, word) for wire, words in WORDS.items() for word in words])
async def test_no_text_is_whole_that_was_cut(wire: str, word: str):
    meant = {"tools": "end"}.get(WORDS[wire][word] or "", WORDS[wire][word])
    ended = await answered(wire, WIRES[wire][1](word, text="The three steps are: first"))

    if meant is None:
        assert isinstance(ended, ModelError) and ended.retryable
        return
    assert isinstance(ended, Finished)
    # What is announced as a call, and is none, is not whole either.
    expected = "unknown" if word in ("tool_use", "tool_calls", "function_call") else meant
    assert (ended.message.text, ended.stop_reason) == ("The three steps are: first", expected)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_that_ends_without_its_end_is_no_answer(wire: str):
    write = WIRES[wire][1]
    body = write("stop", text="The three steps are: first")
    for cut in (body[: len(body) // 3], body[: len(body) // 3].rpartition(b"\n\n")[0] + b"\n\n"):
        ended = await answered(wire, cut)
        assert isinstance(ended, ModelError) and ended.retryable and ended.billable


@pytest.mark.parametrize("wire", ["anthropic", "chat"])
async def test_without_a_reason_an_open_call_does_not_run(wire: str):
    for state, written in CALLS.items():
        body = WIRES[wire][1]("X", written).replace(b'"X"', b"null")
        ended = await answered(wire, body)
        assert isinstance(ended, Finished)
        [call] = ended.message.tool_calls
        assert (call.arguments == {"at": "here"}) == (state == "complete"), state
        assert "_unreadable" in call.arguments or state == "complete"


@pytest.mark.parametrize("wire", ["anthropic", "openai", "chat"])
async def test_an_answer_in_one_piece_is_read_whatever_it_is_called(wire: str):
    bodies = {
        "anthropic": {
            "type": "message",
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "here"}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 9, "output_tokens": 5},
        },
        "openai": {
            "status": "completed",
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
                {"type": "function_call", "call_id": "t1", "name": "look", "arguments": '{"at": "here"}'},
            ],
            "usage": {"input_tokens": 9, "output_tokens": 5},
        },
        "chat": {
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "content": [{"type": "text", "text": "s"}, {"type": "text", "text": "o"}],
                        "function_call": {"name": "look", "arguments": '{"at": "here"}'},
                    },
                    "finish_reason": "function_call",
                }
            ],
            "usage": {"prompt_tokens": 9, "completion_tokens": 5},
        },
    }
    adapter, _ = WIRES[wire]
    for kind in ("application/json; charset=utf-8", "text/event-stream", "text/plain"):
        for body in (orjson.dumps(bodies[wire]), orjson.dumps(bodies[wire], option=orjson.OPT_INDENT_2)):
            async with Provider(Reply([b"\n ", body], headers={"content-type": kind})) as server:
                model = adapter(server.url)
                *_, finished = [piece async for piece in model.stream(request(user("hi"), model=card(provider=wire)))]
                await model.close()
            assert isinstance(finished, Finished) and finished.usage is not None
            assert (finished.message.text, finished.stop_reason, finished.usage.total) == ("so", "tools", 14)
            assert [call.arguments for call in finished.message.tool_calls] == [{"at": "here"}]
