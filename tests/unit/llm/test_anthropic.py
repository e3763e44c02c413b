"""The Messages adapter: the real SDK, a real socket, every way a stream can go."""

import asyncio
from contextlib import aclosing

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wayline.contracts.chat import AssistantMessage, ToolCall, Verbatim
from wayline.contracts.money import Usage
from wayline.llm import Finished, ModelError, Piece, TextDelta, UsageSeen
from wayline.llm.anthropic import Anthropic

from .cards import card, request, user
from .provider import Caller, Provider, Reply, in_pieces, spoken, sse

COUNTED = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 3, "output_tokens": 1}
ENDED = {"output_tokens": 30, "output_tokens_details": {"thinking_tokens": 8}}
THOUGHT = {"type": "thinking", "thinking": "hmm", "signature": "sig"}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "é"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"title": "a"}]}


def begun(usage: dict | None = COUNTED) -> dict:
    return {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": usage}}


def block(index: int, start: dict, *deltas: dict) -> list[dict]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *words: str) -> list[dict]:
    deltas = ({"type": "text_delta", "text": word} for word in words)
    return block(index, {"type": "text", "text": ""}, *deltas)


def tool(index: int, wire_id: str, *written: str, **more: object) -> list[dict]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in written)
    return block(index, {"type": "tool_use", "id": wire_id, "name": "look", "input": {}, **more}, *deltas)


def ended(stop: str | None = "end_turn", usage: dict | None = ENDED) -> list[dict]:
    return [{"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}, {"type": "message_stop"}]


WHOLE = [begun(), *text(0, "well", " hello"), *ended()]
caller = Caller(Anthropic, request(user("hi"), model=card()))
stream, replied, failed = caller.stream, caller.replied, caller.failed


async def test_usage_comes_first_then_joined_text_then_the_whole_message():
    async with Provider(Reply([sse(*WHOLE)])) as provider:
        pieces = await stream(provider)

    assert pieces == [
        UsageSeen(Usage(input=18, cache_read=5, cache_write_5m=3, output=1)),
        TextDelta("well hello"),
        Finished(
            AssistantMessage(text="well hello"),
            Usage(input=18, cache_read=5, cache_write_5m=3, output=30, reasoning=8),
            "end",
        ),
    ]


async def test_text_in_the_same_chunk_before_an_error_is_streamed():
    events = [begun(), *text(0, "so"), {"type": "error", "error": {"type": "overloaded_error"}}]
    pieces: list[Piece] = []
    async with Provider(Reply([sse(*events)])) as provider:
        model = Anthropic(provider.url)
        with pytest.raises(ModelError):
            async for piece in model.stream(request(user("hi"), model=card())):
                pieces.append(piece)
        await model.close()

    assert pieces == [UsageSeen(Usage(input=18, cache_read=5, cache_write_5m=3, output=1)), TextDelta("so")]


async def test_the_request_carries_attempt_and_key_and_no_trace(monkeypatch):
    spans = InMemorySpanExporter()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracing)
    async with Provider(Reply([sse(*WHOLE)])) as provider:
        with tracing.get_tracer("test").start_as_current_span("ours"):
            await stream(provider, api_key="secret")

    [(path, headers, asked)] = provider.asked
    assert path == "/v1/messages"
    assert headers["x-wayline-attempt"] == "acme/j1/1/m1"
    assert "secret" in (headers.get("x-api-key", "") + headers.get("authorization", ""))
    assert "anthropic-version" in headers
    assert "traceparent" not in headers
    assert [span.name for span in spans.get_finished_spans()] == ["ours"]
    assert asked["stream"] is True


async def test_however_the_bytes_are_split_the_message_is_the_same():
    events = [begun(), *text(0, "né", "e ☃"), *tool(1, "a", '{"at', '": "☃"}'), *ended("tool_use")]
    replies = [Reply(in_pieces(sse(*events), seed=seed)) for seed in range(25)]

    async with Provider(*replies) as provider:
        model = Anthropic(provider.url)
        asking = request(user("hi"), model=card())
        found = [spoken([piece async for piece in model.stream(asking)]) for _ in replies]
        await model.close()

    assert all(pieces == found[0] for pieces in found)
    last = found[0][1][-1]
    assert isinstance(last, Finished)
    assert last.message.tool_calls == (ToolCall(call="1", tool="look", arguments={"at": "☃"}, provider_id="a"),)


async def test_a_connection_is_used_again_after_a_whole_answer():
    async with Provider(Reply([sse(*WHOLE)])) as provider:
        model = Anthropic(provider.url)
        for _ in range(5):
            assert [piece async for piece in model.stream(request(user("hi"), model=card()))]
        await model.close()

    assert (len(provider.asked), len(provider.connections)) == (5, 1)


async def test_parallel_calls_are_numbered_in_order_and_need_no_blocks_kept():
    caller = {"caller": {"type": "direct"}}
    finished = await replied(
        begun(), *text(0, "wait"), *tool(1, "a", "", '{"at":1}', **caller), *tool(2, "b"), *ended("tool_use")
    )

    assert finished.message == AssistantMessage(
        text="wait",
        tool_calls=(
            ToolCall(call="1", tool="look", arguments={"at": 1}, provider_id="a"),
            ToolCall(call="2", tool="look", arguments={}, provider_id="b"),
        ),
    )
    assert finished.stop_reason == "tools"


async def test_blocks_that_our_fields_cannot_say_are_kept_as_they_came():
    citation = {"type": "char_location", "cited_text": "a"}
    finished = await replied(
        begun(),
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "h"},
            {"type": "thinking_delta", "thinking": "mm"},
            {"type": "signature_delta", "signature": "sig"},
        ),
        *block(1, {**SEARCH, "input": {}}, {"type": "input_json_delta", "partial_json": '{"q": "é"}'}),
        *block(2, FOUND),
        *text(3, "\n"),
        *block(
            4,
            {"type": "text", "text": "", "citations": []},
            {"type": "citations_delta", "citation": citation},
            {"type": "text_delta", "text": "so"},
        ),
        *tool(5, "a", '{"at":1}'),
        *ended("tool_use"),
    )

    assert finished.message.thinking == "hmm"
    assert finished.message.text == "\nso"
    assert finished.message.verbatim == Verbatim(
        provider="anthropic",
        model="claude",
        blocks=(
            THOUGHT,
            SEARCH,
            FOUND,
            {"type": "text", "text": "\n"},
            {"type": "text", "text": "so", "citations": [citation]},
            {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
        ),
    )


async def test_blank_text_beside_no_thinking_is_not_worth_keeping():
    finished = await replied(begun(), *text(0, "\n"), *text(1), *tool(2, "a", "{}"), *ended("tool_use"))

    assert finished.message.verbatim is None


async def test_arguments_cut_short_are_handed_on_as_they_came():
    finished = await replied(begun(), *tool(0, "a", '{"at": "he'), *ended("max_tokens"))

    assert finished.message.tool_calls[0].arguments == {"_unreadable": '{"at": "he'}
    assert finished.stop_reason == "max_tokens"


async def test_arguments_written_badly_are_read_as_they_were_meant():
    finished = await replied(begun(), *tool(0, "a", "{'at': 'here',}"), *ended("tool_use"))

    assert finished.message.tool_calls[0].arguments == {"at": "here"}


async def test_a_call_closed_before_the_cut_is_whole():
    finished = await replied(begun(), *tool(0, "a", "{'at': 1}"), *tool(1, "b", "{'at': 1"), *ended("max_tokens"))

    assert [call.arguments for call in finished.message.tool_calls] == [{"at": 1}, {"_unreadable": "{'at': 1"}]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "stop_sequence"),
        ("refusal", "refused"),
        ("pause_turn", "paused"),
        ("model_context_window_exceeded", "context_full"),
        ("something_new", "unknown"),
        ("MAX_TOKENS", "max_tokens"),
        (None, "end"),
    ],
)
async def test_the_stop_reason_is_translated(reason, stop):
    assert (await replied(begun(), *text(0, "so"), *ended(reason))).stop_reason == stop


async def test_a_refusal_keeps_its_category():
    [delta, stop] = ended("refusal")
    delta["delta"]["stop_details"] = {"type": "refusal", "category": "cyber", "explanation": "It asks for  malware."}

    assert (await replied(begun(), *text(0, "so"), delta, stop)).refusal == "cyber, It asks for malware."


async def test_what_the_adapter_does_not_know_is_passed_over():
    finished = await replied(
        begun(),
        {"type": "something_new", "index": 7},
        *block(0, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "short"}),
        *text(1, "so"),
        *ended(),
    )

    assert finished.message.text == "so"
    assert finished.message.verbatim
    assert finished.message.verbatim.blocks[0] == {"type": "compaction", "content": "short"}


@pytest.mark.parametrize("usage", [None, {}])
async def test_an_answer_without_usage_is_kept_with_unknown_usage(usage):
    finished = await replied(begun(usage), *text(0, "so"), *ended(usage=usage))

    assert (finished.message.text, finished.usage) == ("so", None)


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "invalid_request", False),
        (401, "authentication", False),
        (404, "unknown_model", False),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (529, "overloaded", True),
    ],
)
async def test_a_refusal_is_asked_once_and_keeps_how_long_to_wait(status, code, retryable):
    headers = {"content-type": "application/json", "retry-after": "7"}
    body = b'{"type":"error","error":{"type":"some_error","message":"no"}}'

    error, provider = await failed(Reply([body], status=status, headers=headers))

    assert (error.code, error.retryable, error.billable) == (code, retryable, False)
    assert error.after_s == (7.0 if retryable else None)
    assert str(error) == f"{status}: no"
    assert len(provider.asked) == 1


async def test_an_overload_within_a_200_is_retryable_and_billable():
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    error, _ = await failed(Reply([sse(begun(), *text(0, "so"), overloaded)]))

    assert (error.code, error.retryable, error.billable) == ("overloaded", True, True)


@pytest.mark.parametrize("drop", [True, False])
async def test_a_stream_cut_early_is_retryable_and_billable(drop):
    error, _ = await failed(Reply([sse(begun(), *text(0, "half"))], drop=drop))

    assert (error.code, error.retryable, error.billable) == ("stream_cut", True, True)


async def test_a_cut_after_the_last_event_takes_nothing_away():
    async with Provider(Reply([sse(*WHOLE)], drop=True)) as provider:
        *_, last = await stream(provider)

    assert isinstance(last, Finished)
    assert last.message.text == "well hello"


@pytest.mark.parametrize("drop", [True, False])
async def test_an_answer_cut_after_its_final_count_is_whole(drop):
    async with Provider(Reply([sse(*WHOLE[:-1])], drop=drop)) as provider:
        *_, last = await stream(provider)

    assert isinstance(last, Finished) and last.usage is not None
    assert (last.message.text, last.usage.output, last.stop_reason) == ("well hello", 30, "end")


async def test_an_error_after_the_final_count_takes_nothing_away():
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    async with Provider(Reply([sse(*WHOLE[:-1], overloaded)])) as provider:
        *_, last = await stream(provider)

    assert isinstance(last, Finished) and last.usage is not None
    assert (last.message.text, last.usage.output) == ("well hello", 30)


async def test_a_lost_connection_is_billable_and_one_never_made_is_not():
    lost, provider = await failed(Reply(deaf=True))
    assert (lost.code, lost.retryable, lost.billable) == ("connection", True, True)
    assert len(provider.asked) == 1

    with pytest.raises(ModelError) as caught:
        await stream(provider)
    assert (caught.value.code, caught.value.retryable, caught.value.billable) == ("connection", True, False)


@pytest.mark.parametrize("pieces", [[], [sse(begun(), *text(0, "half"))]])
async def test_a_provider_that_falls_silent_is_given_up(pieces):
    error, _ = await failed(Reply(pieces, hold=True), silence_max_s=0.2)

    assert (error.code, error.retryable, error.billable) == ("timeout", True, True)


async def test_cancelling_the_caller_hangs_up_at_once():
    async with Provider(Reply([sse(begun(), *text(0, "half"))], hold=True)) as provider:
        model = Anthropic(provider.url)
        begun_to_speak = asyncio.Event()

        async def listen() -> None:
            async with aclosing(model.stream(request(user("hi"), model=card()))) as pieces:
                async for piece in pieces:
                    if isinstance(piece, TextDelta):
                        begun_to_speak.set()

        task = asyncio.create_task(listen())
        await asyncio.wait_for(begun_to_speak.wait(), 10)
        task.cancel()
        await asyncio.wait_for(provider.hung_up.wait(), 10)
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.close()


async def test_an_error_within_a_stream_hangs_up_at_once():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    async with Provider(Reply([sse(begun(), *text(0, "half"), error)], hold=True)) as provider:
        model = Anthropic(provider.url)
        with pytest.raises(ModelError) as caught:
            _ = [piece async for piece in model.stream(request(user("hi"), model=card()))]
        await asyncio.wait_for(provider.hung_up.wait(), 10)
        await model.close()

    assert caught.value.billable


async def test_who_stops_reading_hangs_up_at_once():
    async with Provider(Reply([sse(begun(), *text(0, "half"))], hold=True)) as provider:
        model = Anthropic(provider.url)
        async with aclosing(model.stream(request(user("hi"), model=card()))) as pieces:
            await anext(pieces)
        await asyncio.wait_for(provider.hung_up.wait(), 10)
        await model.close()
