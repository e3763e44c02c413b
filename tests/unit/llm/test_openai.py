"""The Responses adapter: the real SDK, a real socket, every way a stream can go."""

import asyncio
from contextlib import aclosing
from typing import Any

import orjson
import pytest

from wayline.contracts.chat import AssistantMessage, ToolCall, Verbatim
from wayline.contracts.money import Usage
from wayline.llm import Finished, ModelError, Piece, TextDelta
from wayline.llm.openai import OpenAI

from .cards import card, request, user
from .provider import Caller, Provider, Reply, in_pieces, spoken, sse

COUNTED = {
    "input_tokens": 18,
    "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 8},
}
USED = Usage(input=18, cache_read=5, cache_write_5m=3, output=30, reasoning=8)
CARD = card(provider="openai", model="gpt", reasoning="effort")
BEGUN = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "usage": None}}


def message(*words: str, **more) -> dict:
    part = {"type": "output_text", "text": "".join(words), "annotations": [], "logprobs": []}
    return {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part], **more}


def call(wire_id: str, arguments: str) -> dict:
    fields = {"call_id": wire_id, "name": "look", "arguments": arguments}
    return {"id": f"fc_{wire_id}", "type": "function_call", "status": "completed", **fields}


def thought(sealed: str = "gAAA", **more) -> dict:
    summary = [{"type": "summary_text", "text": "hmm"}]
    return {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": sealed, **more}


def text(at: int, *words: str, **more) -> list[dict]:
    whole = message(*words, **more)
    return [
        {"type": "response.output_item.added", "output_index": at, "item": {**whole, "content": []}},
        *({"type": "response.output_text.delta", "output_index": at, "delta": word} for word in words),
        {"type": "response.output_item.done", "output_index": at, "item": whole},
    ]


def tool(at: int, wire_id: str, *written: str) -> list[dict]:
    kind = "response.function_call_arguments.delta"
    return [
        {"type": "response.output_item.added", "output_index": at, "item": call(wire_id, "")},
        *({"type": kind, "output_index": at, "delta": piece} for piece in written),
        {"type": "response.output_item.done", "output_index": at, "item": call(wire_id, "".join(written))},
    ]


def done(at: int, item: dict) -> dict:
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def ended(*output: dict, kind: str = "completed", usage: dict | None = COUNTED, **more) -> dict:
    response = {"id": "resp_1", "status": kind, "output": list(output), "usage": usage, **more}
    return {"type": f"response.{kind}", "response": response}


WHOLE = [BEGUN, *text(0, "well", " hello"), ended(message("well hello"))]
caller = Caller(OpenAI, request(user("hi"), model=CARD))
stream, replied, failed = caller.stream, caller.replied, caller.failed


async def test_joined_text_comes_first_then_the_message_with_usage():
    async with Provider(Reply([sse(*WHOLE)])) as provider:
        pieces = await stream(provider)

    assert pieces == [
        TextDelta("well hello"),
        Finished(AssistantMessage(text="well hello"), USED, "end"),
    ]


async def test_the_request_carries_attempt_and_key_and_no_trace():
    async with Provider(Reply([sse(*WHOLE)])) as provider:
        await stream(provider, api_key="secret")

    [(path, headers, asked)] = provider.asked
    assert path == "/responses"
    assert headers["x-wayline-attempt"] == "acme/j1/1/m1"
    assert headers["authorization"] == "Bearer secret"
    assert "traceparent" not in headers
    assert (asked["store"], asked["include"]) == (False, ["reasoning.encrypted_content"])


async def test_however_the_bytes_are_split_the_message_is_the_same():
    events = [BEGUN, *text(0, "né", "e ☃"), *tool(1, "a", '{"at', '": "☃"}'), ended()]
    replies = [Reply(in_pieces(sse(*events), seed=seed)) for seed in range(25)]

    async with Provider(*replies) as provider:
        model = OpenAI(provider.url)
        found = [spoken([piece async for piece in model.stream(request(user("hi"), model=CARD))]) for _ in replies]
        await model.close()

    assert len(provider.connections) == 1
    assert all(pieces == found[0] for pieces in found)
    assert found[0][1][-1].message.tool_calls[0].arguments == {"at": "☃"}


async def test_parallel_calls_are_numbered_in_order_and_need_no_items_kept():
    finished = await replied(BEGUN, *text(0, "wait"), *tool(1, "a", '{"at": 1}'), *tool(2, "b", "{}"), ended())

    assert finished.message == AssistantMessage(
        text="wait",
        tool_calls=(
            ToolCall(call="1", tool="look", arguments={"at": 1}, provider_id="a"),
            ToolCall(call="2", tool="look", arguments={}, provider_id="b"),
        ),
    )
    assert finished.stop_reason == "tools"


async def test_items_without_a_field_of_ours_are_kept_verbatim():
    items = [thought("sealed whole"), message("so", phase="commentary"), call("a", "{}")]
    finished = await replied(
        BEGUN,
        {"type": "response.output_item.added", "output_index": 0, "item": thought("seal")},
        *(done(at, item) for at, item in enumerate(items)),
        ended(thought("sealed anew"), *items[1:]),
    )

    assert (finished.message.thinking, finished.message.text) == ("hmm", "so")
    assert finished.message.verbatim == Verbatim(provider="openai", model="gpt", blocks=tuple(items))


async def test_reasoning_without_content_is_not_sent_back():
    named = {"id": "rs_1", "type": "reasoning", "summary": []}

    plain = await replied(BEGUN, done(0, named), done(1, call("a", "{}")), ended())
    phased = await replied(BEGUN, done(0, named), done(1, message("so", phase="commentary")), ended())

    assert plain.message.verbatim is None
    assert phased.message.verbatim
    assert phased.message.verbatim.blocks == (
        {"type": "message", "role": "assistant", "content": "so", "phase": "commentary"},
    )


async def test_a_stream_of_only_deltas_or_only_the_end_is_read():
    pieces = [event for event in [*text(0, "so"), *tool(1, "a", '{"at":', "1}")] if "done" not in event["type"]]

    for events in ([*pieces, ended()], [ended(message("so"), call("a", '{"at":1}'))]):
        finished = await replied(BEGUN, *events)
        assert finished.message.text == "so"
        assert finished.message.tool_calls == (ToolCall(call="1", tool="look", arguments={"at": 1}, provider_id="a"),)


async def test_arguments_cut_short_are_handed_on_as_they_came():
    incomplete = ended(kind="incomplete", incomplete_details={"reason": "max_output_tokens"})
    finished = await replied(BEGUN, *tool(0, "a", '{"at": "he'), incomplete)

    assert finished.message.tool_calls[0].arguments == {"_unreadable": '{"at": "he'}
    assert finished.stop_reason == "max_tokens"


async def test_arguments_written_badly_are_read_as_they_were_meant():
    finished = await replied(BEGUN, *tool(0, "a", "{'at': 'here',}"), ended())

    assert finished.message.tool_calls[0].arguments == {"at": "here"}


async def test_a_refusal_becomes_text_marked_as_one():
    refusal = {"type": "refusal", "refusal": "no"}
    finished = await replied(
        BEGUN,
        {"type": "response.refusal.delta", "output_index": 0, "delta": "no"},
        done(0, {**message(), "content": [refusal]}),
        ended(),
    )
    filtered = await replied(BEGUN, ended(kind="incomplete", incomplete_details={"reason": "content_filter"}))

    assert (finished.message.text, finished.stop_reason) == ("no", "refused")
    assert filtered.stop_reason == "refused"


async def test_what_the_adapter_does_not_know_is_passed_over():
    odd = {"id": "x", "type": "something_new", "content": "?"}
    finished = await replied(BEGUN, {"type": "response.new", "x": 1}, done(0, odd), *text(1, "so"), ended())

    assert finished.message.text == "so"
    assert finished.message.verbatim and finished.message.verbatim.blocks == (odd, message("so"))


async def test_an_answer_without_usage_is_kept_with_unknown_usage():
    finished = await replied(BEGUN, *text(0, "so"), ended(usage=None))

    assert (finished.message.text, finished.usage) == ("so", None)


@pytest.mark.parametrize(
    ("status", "error", "code", "retryable"),
    [
        (400, {"message": "no"}, "invalid_request", False),
        (401, {"message": "no", "code": "invalid_api_key"}, "authentication", False),
        (404, {"message": "no"}, "unknown_model", False),
        (429, {"message": "no", "code": "rate_limit_exceeded"}, "rate_limited", True),
        (429, {"message": "no", "code": "insufficient_quota"}, "spend_cap", False),
        (500, {"message": "no"}, "server_error", True),
    ],
)
async def test_a_refusal_is_asked_once_and_keeps_how_long_to_wait(status, error, code, retryable):
    headers = {"content-type": "application/json", "retry-after-ms": "250"}
    found, provider = await failed(Reply([orjson.dumps({"error": error})], status=status, headers=headers))

    assert (found.code, found.retryable, found.billable) == (code, retryable, False)
    assert found.after_s == (0.25 if retryable else None)
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("event", "code", "retryable"),
    [
        ({"type": "error", "code": "server_error", "message": "oops"}, "server_error", True),
        ({"type": "error", "error": {"code": "insufficient_quota", "message": "pay"}}, "spend_cap", False),
        (ended(kind="failed", error={"code": "rate_limit_exceeded", "message": "slow"}), "rate_limited", True),
        (ended(kind="failed", error={"code": "invalid_prompt", "message": "no"}), "invalid_request", False),
    ],
)
async def test_an_error_within_a_200_may_be_billed(event, code, retryable):
    error, _ = await failed(Reply([sse(BEGUN, *text(0, "so"), event)]))

    assert (error.code, error.retryable, error.billable) == (code, retryable, True)


@pytest.mark.parametrize("usage", [COUNTED, None])
@pytest.mark.parametrize("kind", ["failed", "incomplete", "cancelled"])
async def test_a_failed_response_keeps_its_usage_if_counted(kind, usage):
    failure = ended(kind=kind, error={"code": "server_error", "message": "oops"}, usage=usage)
    error, _ = await failed(Reply([sse(BEGUN, failure)]))

    assert (error.code, error.usage) == ("server_error", USED if usage else None)


@pytest.mark.parametrize("drop", [True, False])
async def test_a_stream_cut_early_is_retryable_and_billable(drop):
    error, _ = await failed(Reply([sse(BEGUN, *text(0, "half"))], drop=drop))

    assert (error.code, error.retryable, error.billable) == ("stream_cut", True, True)


async def test_a_lost_connection_is_billable_and_one_never_made_is_not():
    lost, provider = await failed(Reply(deaf=True))
    assert (lost.code, lost.retryable, lost.billable) == ("connection", True, True)
    assert len(provider.asked) == 1

    with pytest.raises(ModelError) as caught:
        await stream(provider)
    assert (caught.value.code, caught.value.retryable, caught.value.billable) == ("connection", True, False)


@pytest.mark.parametrize("pieces", [[], [sse(BEGUN, *text(0, "half"))]])
async def test_a_provider_that_falls_silent_is_given_up(pieces):
    error, _ = await failed(Reply(pieces, hold=True), silence_max_s=0.2)

    assert (error.code, error.retryable, error.billable) == ("timeout", True, True)


async def test_cancelling_the_caller_hangs_up_at_once():
    async with Provider(Reply([sse(BEGUN, *text(0, "half"))], hold=True)) as provider:
        model = OpenAI(provider.url)
        begun_to_speak = asyncio.Event()

        async def listen() -> None:
            async with aclosing(model.stream(request(user("hi"), model=CARD))) as pieces:
                async for _ in pieces:
                    begun_to_speak.set()

        task = asyncio.create_task(listen())
        await asyncio.wait_for(begun_to_speak.wait(), 10)
        task.cancel()
        await asyncio.wait_for(provider.hung_up.wait(), 10)
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.close()


async def test_an_error_within_a_stream_hangs_up_at_once():
    error = {"type": "error", "code": "server_error", "message": "oops"}
    async with Provider(Reply([sse(BEGUN, *text(0, "half"), error)], hold=True)) as provider:
        model = OpenAI(provider.url)
        with pytest.raises(ModelError) as caught:
            _ = [piece async for piece in model.stream(request(user("hi"), model=CARD))]
        await asyncio.wait_for(provider.hung_up.wait(), 10)
        await model.close()

    assert caught.value.billable


async def test_who_stops_reading_hangs_up_at_once():
    async with Provider(Reply([sse(BEGUN, *text(0, "half"))], hold=True)) as provider:
        model = OpenAI(provider.url)
        async with aclosing(model.stream(request(user("hi"), model=CARD))) as pieces:
            await anext(pieces)
        await asyncio.wait_for(provider.hung_up.wait(), 10)
        await model.close()


async def test_the_last_event_is_enough():
    output = [thought(), message("so")]
    finished = await replied(ended(*output))

    assert (finished.message.text, finished.message.thinking, finished.usage) == ("so", "hmm", USED)
    assert finished.message.verbatim == Verbatim(provider="openai", model="gpt", blocks=tuple(output))
    unfinished = {"type": "response.completed", "response": {"status": "in_progress", "output": output}}
    error, _ = await failed(Reply([sse(unfinished)]))
    assert error.code == "stream_cut"


def unverified(param: str) -> Reply:
    error = {"message": "Your organization must be verified.", "param": param, "code": "unsupported_value"}
    return Reply([orjson.dumps({"error": error})], status=400, headers={"content-type": "application/json"})


async def test_a_refused_summary_is_not_asked_for_again():
    asking = request(user("hi"), model=CARD, effort="low")
    async with Provider(unverified("reasoning.summary"), Reply([sse(*WHOLE)])) as provider:
        model = OpenAI(provider.url)
        ends = [[piece async for piece in model.stream(asking)][-1] for _ in range(2)]
        await model.close()

    sent = [asked["reasoning"] for _, _, asked in provider.asked]
    assert sent == [{"effort": "low", "summary": "auto"}, {"effort": "low"}, {"effort": "low"}]
    assert {headers["x-wayline-attempt"] for _, headers, _ in provider.asked} == {"acme/j1/1/m1"}
    for end in ends:
        assert isinstance(end, Finished)
        assert end.notes == ("summary of thinking dropped: OpenAI shows it to verified organisations alone",)


async def test_calls_beside_each_other_all_learn_from_a_refused_summary():
    all_asked = asyncio.Barrier(3)

    async def reply(body: dict[str, Any]) -> Reply:
        if "summary" not in body.get("reasoning", {}):
            return Reply([sse(*WHOLE)])
        await all_asked.wait()
        return unverified("reasoning.summary")

    async with Provider(reply) as provider:
        model = OpenAI(provider.url)

        async def last() -> Piece:
            return [piece async for piece in model.stream(request(user("hi"), model=CARD))][-1]

        ends = await asyncio.gather(last(), last(), last())
        await model.close()

    assert [type(end) for end in ends] == [Finished] * 3
    assert len(provider.asked) == 6


async def test_an_account_barred_from_streaming_gets_a_whole_answer():
    body = orjson.dumps(ended(thought(), message("well hello"), call("a", '{"at": 1}'))["response"])
    whole = Reply([body], headers={"content-type": "application/json"})
    async with Provider(unverified("stream"), whole) as provider:
        text, (end,) = spoken(await stream(provider))

    assert [asked["stream"] for _, _, asked in provider.asked] == [True, False]
    assert isinstance(end, Finished)
    assert (text, end.message.text, end.usage, end.stop_reason) == ("well hello", "well hello", USED, "tools")
    assert [each.arguments for each in end.message.tool_calls] == [{"at": 1}]


async def test_another_refusal_of_the_summary_is_told():
    again = unverified("reasoning.summary")
    error, provider = await failed(again, again)

    assert (error.code, error.param, len(provider.asked)) == ("invalid_request", "reasoning.summary", 2)
