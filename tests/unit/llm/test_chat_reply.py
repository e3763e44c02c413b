"""What endpoints say in Chat Completions, each in its own way, is one message of ours."""

import orjson
import pytest

from wayline.contracts.chat import AssistantMessage, ToolCall, Verbatim
from wayline.contracts.money import Usage
from wayline.llm import Finished, ModelError
from wayline.llm.openai_chat import Reply
from wayline.llm.openai_chat import reply as chat_reply
from wayline.llm.openai_chat.reply import LINES_MAX
from wayline.llm.transport.server_sent_events import json_object

USAGE = {"prompt_tokens": 9, "completion_tokens": 2}


def read(body: dict) -> Finished:
    """What is made of a body that is not streamed."""
    reply = Reply()
    reply.take(body)
    reply.done = True
    return reply.finished(provider="chat", model="m")


def whole(message: dict, finish: str | None = "stop", **more) -> dict:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": USAGE, **more}


def streamed(*deltas: dict, finish: str | None = "stop") -> Finished:
    reply = Reply()
    for delta in deltas:
        reply.take({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    reply.take({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": USAGE})
    return reply.finished(provider="chat", model="m")


def test_a_whole_body_is_read_like_a_stream():
    assert read(whole({"content": "well"})) == Finished(
        AssistantMessage(text="well"), Usage(input=9, output=2), "end", ()
    )


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", "end"),
        ("eos", "end"),
        (None, "end"),
        ("STOP", "end"),
        ("length", "max_tokens"),
        ("model_length", "max_tokens"),
        ("MAX_TOKENS", "max_tokens"),
        ("max_tokens", "max_tokens"),
        ("content_filter", "refused"),
        ("SAFETY", "refused"),
        ("something_new", "unknown"),
        ("tool_calls", "unknown"),
    ],
)
def test_the_finish_reason_is_translated(finish, stop):
    assert read(whole({"content": "well"}, finish)).stop_reason == stop


def test_a_refusal_becomes_the_answers_text():
    finished = read(whole({"content": None, "refusal": "I will not."}))

    assert (finished.message.text, finished.stop_reason) == ("I will not.", "refused")


def test_an_answer_that_was_filtered_away_has_no_text():
    finished = read({"choices": [{"index": 0, "finish_reason": "content_filter"}], "usage": USAGE})

    assert (finished.message, finished.stop_reason) == (AssistantMessage(), "refused")


@pytest.mark.parametrize(
    ("finish", "filters", "named"),
    [
        ("SAFETY", None, "SAFETY"),
        (
            "content_filter",
            {"hate": {"filtered": True, "severity": "high"}, "self_harm": {"filtered": False}},
            "hate: high",
        ),
        ("content_filter", {"jailbreak": {"filtered": False, "detected": True}}, "jailbreak"),
        ("content_filter", "high", ""),
        ("stop", {"hate": {"filtered": True, "severity": "high"}}, ""),
    ],
)
def test_a_refusal_keeps_how_its_endpoint_names_it(finish, filters, named):
    body = whole({"content": "No."}, finish)
    body["choices"][0]["content_filter_results"] = filters

    assert read(body).refusal == named


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_is_kept_apart_from_the_text(field):
    finished = streamed({field: "So "}, {field: "it is."}, {"content": "Yes."})

    assert (finished.message.thinking, finished.message.text) == ("So it is.", "Yes.")


def test_content_in_parts_is_text_and_thinking():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "So it is."}]},
        {"type": "text", "text": "Yes."},
    ]
    finished = streamed({"content": parts})

    assert (finished.message.thinking, finished.message.text) == ("So it is.", "Yes.")


def test_of_several_alternatives_the_first_counts():
    body = {"choices": [{"index": 1, "message": {"content": "b"}}, {"index": 0, "message": {"content": "a"}}]}

    assert read({**body, "usage": USAGE}).message.text == "a"


def piece(id: str | None = None, index: int | None = None, name: str | None = None, arguments: object = None) -> dict:
    fields = {"id": id, "index": index, "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [{key: value for key, value in fields.items() if value is not None}]}


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(
            [
                piece("a", 0, "look", ""),
                piece(None, 0, None, '{"at":'),
                piece(None, 0, None, "1}"),
                piece("b", 1, "find", '{"at":2}'),
            ],
            id="as documented",
        ),
        pytest.param([piece("a", 0, "look", '{"at":1}'), piece("b", 0, "find", '{"at":2}')], id="all numbered 0"),
        pytest.param([piece("a", None, "look", '{"at":1}'), piece("b", None, "find", '{"at":2}')], id="not numbered"),
        pytest.param(
            [piece("a", 0, "look", '{"at"'), piece("a", 0, "look", ":1}"), piece("b", 1, "find", '{"at":2}')],
            id="id and name in each piece",
        ),
        pytest.param([piece("a", 0, "look", {"at": 1}), piece("b", 1, "find", {"at": 2})], id="arguments as objects"),
        pytest.param(
            [
                piece("a", 0, "look", '{"a'),
                piece(None, 0, None, 't":1}'),
                piece("b", 0, "find", '{"a'),
                piece(None, 0, None, 't":2}'),
            ],
            id="all numbered 0, in pieces",
        ),
        pytest.param(
            [
                piece("a", None, "look", '{"a'),
                piece(None, None, None, 't":1}'),
                piece("b", None, "find", '{"a'),
                piece(None, None, None, 't":2}'),
            ],
            id="not numbered, in pieces",
        ),
        pytest.param(
            [
                piece("a", 0, "look", '{"a'),
                piece(None, 1, None, 't":'),
                piece(None, 2, None, "1}"),
                piece("b", 3, "find", '{"at":'),
                piece(None, 4, None, "2}"),
            ],
            id="numbered anew with each piece",
        ),
        pytest.param(
            [
                piece("a", 0, "look", '{"a'),
                piece("a", 1, None, 't":1}'),
                piece("b", 2, "find", '{"at":'),
                piece("b", 3, "find", "2}"),
            ],
            id="numbered anew, and named by id",
        ),
        pytest.param(
            [
                piece("a", 0, "look", ""),
                piece("b", 1, "find", ""),
                piece(None, 1, None, '{"at":2}'),
                piece(None, 0, None, '{"at":1}'),
            ],
            id="turn about",
        ),
        pytest.param(
            [piece("a", 0, "look", '{"at":1}'), piece("a", 0, "look", ""), piece("b", 1, "find", '{"at":2}')],
            id="named again at its end",
        ),
    ],
)
def test_tool_calls_are_put_together_however_they_are_numbered(pieces):
    assert streamed(*pieces, finish="tool_calls").message.tool_calls == (
        ToolCall(call="1", tool="look", arguments={"at": 1}, provider_id="a"),
        ToolCall(call="2", tool="find", arguments={"at": 2}, provider_id="b"),
    )


@pytest.mark.parametrize("indexes", [(0, 1), (0, 0), (None, None)])
def test_calls_that_share_an_id_are_two(indexes):
    pieces = [piece("same", at, "look", f'{{"at":{n}}}') for n, at in enumerate(indexes)]

    calls = streamed(*pieces, finish="tool_calls").message.tool_calls

    assert [call.arguments for call in calls] == [{"at": 0}, {"at": 1}]


def test_the_old_function_call_is_a_tool_call():
    finished = read(whole({"content": None, "function_call": {"name": "look", "arguments": "{}"}}, "function_call"))

    assert (finished.message.tool_calls, finished.stop_reason) == ((ToolCall(call="1", tool="look"),), "tools")


def test_a_call_without_arguments_has_none():
    assert streamed(piece("a", 0, "look")).message.tool_calls[0].arguments == {}


def test_broken_arguments_are_mended():
    assert streamed(piece("a", 0, "look", "{'at': 1,}")).message.tool_calls[0].arguments == {"at": 1}


def test_arguments_that_the_output_limit_cut_are_not_mended():
    [call] = streamed(piece("a", 0, "write", '{"text": "half of'), finish="length").message.tool_calls

    assert call.arguments == {"_unreadable": '{"text": "half of'}


def test_calls_cut_by_the_output_limit_are_not_called_whole():
    assert streamed(piece("a", 0, "look", "{}"), finish="length").stop_reason == "max_tokens"


def test_thinking_before_a_call_is_kept_to_be_sent_back():
    finished = streamed({"reasoning_content": "Look first."}, piece("a", 0, "look", '{"at": 1}'))

    function = {"name": "look", "arguments": '{"at":1}'}
    assert finished.message.verbatim == Verbatim(
        provider="chat",
        model="m",
        blocks=(
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "Look first.",
                "tool_calls": [{"id": "a", "type": "function", "function": function}],
            },
        ),
    )


def test_a_signature_on_a_call_is_kept_to_be_sent_back():
    signed = piece("a", 0, "look", "{}")
    signed["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "s"}}
    verbatim = streamed(signed).message.verbatim

    assert verbatim is not None
    assert verbatim.blocks[0]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


@pytest.mark.parametrize("message", [{"content": "well"}, {"content": "well", "reasoning": "So."}])
def test_what_our_own_fields_say_is_not_kept_twice(message):
    assert read(whole(message)).message.verbatim is None


def test_usage_is_found_where_groq_puts_it():
    reply = Reply()
    reply.take(
        {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}], "x_groq": {"usage": USAGE}}
    )

    assert reply.finished(provider="chat", model="m").usage == Usage(input=9, output=2)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"message": "no", "code": "content_filter", "status": 400}}, "invalid_request"),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, "invalid_request"),
        ({"error": {"message": "no", "type": "server_error"}}, "server_error"),
        ({"error": "no"}, "server_error"),
        ({"error": {"message": "slow down", "code": 429}}, "rate_limited"),
        ({"choices": [{"error": {"message": "gone", "code": 502}}]}, "server_error"),
    ],
)
def test_an_error_inside_a_200_is_an_error(body, code):
    with pytest.raises(ModelError) as caught:
        read(body)

    assert (caught.value.code, caught.value.billable) == (code, True)


def test_an_error_after_message_and_usage_changes_nothing():
    reply = Reply()
    reply.take({"choices": [{"index": 0, "delta": {"content": "well"}, "finish_reason": "stop"}]})
    reply.take({"choices": [], "usage": USAGE})

    reply.take({"error": {"message": "no", "type": "server_error"}})

    assert reply.finished(provider="chat", model="m").usage == Usage(input=9, output=2)


def test_lines_that_are_no_data_say_nothing():
    reply = Reply()
    odd = (b"", b": ping", b"event: ping", b"data:", b"data: : keepalive", b"data: null", b"data: [DONE]\r")

    assert [reply.take_line(line) for line in odd] == [""] * len(odd)
    assert reply.done


def test_a_chunk_may_stand_in_several_lines_of_data():
    reply = Reply()
    chunk = orjson.dumps({"choices": [{"index": 0, "delta": {"content": "a"}}]}, option=orjson.OPT_INDENT_2)

    assert "".join(reply.take_line(b"data: " + line) for line in chunk.split(b"\n")) == "a"


@pytest.mark.parametrize(("line", "read"), [(b'data: "a",', 0), (b"data: }", LINES_MAX)])
def test_a_chunk_in_endless_lines_is_given_up(monkeypatch: pytest.MonkeyPatch, line: bytes, read: int):
    tried: list[bytes] = []
    monkeypatch.setattr(chat_reply, "json_object", lambda data: tried.append(data) or json_object(data))
    answer = Reply()
    answer.take_line(b'data: {"a": [')

    with pytest.raises(ModelError):
        for _ in range(2 * LINES_MAX):
            answer.take_line(line)
    assert len(tried) == read


def test_usage_that_becomes_unreadable_is_unknown_in_the_end():
    reply = Reply()
    reply.take({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}], "usage": USAGE})
    reply.take({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})

    assert reply.finished(provider="chat", model="m").usage is None
    assert reply.seen == Usage(input=9, output=2)


def test_a_carriage_return_before_the_line_end_does_no_harm():
    chunk = orjson.dumps({"choices": [{"index": 0, "delta": {"content": "a"}}]})

    assert Reply().take_line(b"data:" + chunk + b"\r") == "a"
