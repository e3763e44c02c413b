"""A request of ours in Chat Completions: what the model's card allows, and notes on what it does not."""

from dataclasses import replace

import pytest

from wayline.contracts.chat import (
    AssistantMessage,
    FilePart,
    ImagePart,
    NoteMessage,
    TextPart,
    ToolCall,
    ToolImage,
    ToolMessage,
    UserMessage,
    Verbatim,
)
from wayline.contracts.models import CacheRules, ModelCard
from wayline.contracts.tools import ToolDefinition
from wayline.llm import File, ModelError, ModelRequest
from wayline.llm.inputs import encoded
from wayline.llm.openai_chat import build_body

from .cards import calling, result

ASKED = UserMessage(parts=(TextPart(text="hi"),))
NOTE = NoteMessage(label="CONTEXT", text="It is raining.")
CARD = ModelCard(provider="chat", model="m", tier="standard")
REQUEST = ModelRequest(CARD, "be brief", (ASKED,), (), 50, "a1")
CAT = File("cat.png", "image/png", encoded("image/png", b"meow"))
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def built(*messages, card: dict | None = None, **more) -> tuple[dict, tuple[str, ...]]:
    changed = CARD.model_copy(update=card or {})
    return build_body(replace(REQUEST, card=changed, messages=messages or (ASKED,), **more))


def test_a_plain_request_holds_nothing_that_an_endpoint_may_not_know():
    assert built() == (
        {
            "model": "m",
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
            "max_tokens": 50,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        (),
    )


@pytest.mark.parametrize(("taken", "role"), [(True, "system"), (False, "user")])
def test_a_note_is_a_system_message_where_the_model_allows_it(taken, role):
    body, _ = built(ASKED, NOTE, card={"system_messages": taken})

    assert body["messages"][2] == {"role": role, "content": "[CONTEXT]\nIt is raining."}


def test_a_style_is_asked_for_with_the_question():
    body, _ = built(UserMessage(parts=(TextPart(text="hi"), TextPart(text="you")), style="short"))

    assert body["messages"][1]["content"] == "hi\n\nyou\n\nAnswer in this style: short"


def test_images_and_files_travel_inside():
    files = {
        "d1": CAT,
        "d2": File("a.pdf", "application/pdf", encoded("application/pdf", b"meow")),
        "d3": File("a.txt", "text/plain", encoded("text/plain", b"purr")),
    }
    parts = (TextPart(text="what?"), ImagePart(document_id="d1"), *(FilePart(document_id=d) for d in ("d2", "d3")))
    body, _ = built(UserMessage(parts=parts, style="short"), card={"images": True, "files": True}, files=files)

    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "what?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,bWVvdw=="}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,bWVvdw=="}},
        {"type": "text", "text": "[FILE a.txt]\npurr"},
        {"type": "text", "text": "Answer in this style: short"},
    ]


@pytest.mark.parametrize("part", [ImagePart(document_id="d1"), FilePart(document_id="d1")])
def test_a_model_that_takes_no_such_input_is_not_asked(part):
    with pytest.raises(ModelError) as caught:
        built(UserMessage(parts=(part,)), files={"d1": CAT})

    assert (caught.value.code, caught.value.retryable) == ("unsupported_input", False)
    assert "chat/m takes no" in str(caught.value)


def test_a_missing_image_is_refused_by_its_id():
    with pytest.raises(ModelError, match="d1 is not there"):
        built(UserMessage(parts=(ImagePart(document_id="d1"),)), card={"images": True})


def test_temperature_and_effort_are_sent_to_models_that_take_them():
    card = {"temperature": True, "reasoning": "effort", "efforts": ("low", "high")}
    body, notes = built(card=card, temperature=0.7, effort="high")

    assert (body["temperature"], body["reasoning_effort"], notes) == (0.7, "high", ())


def test_what_a_model_does_not_take_is_dropped_with_a_note():
    body, notes = built(card={"reasoning": "effort"}, temperature=0.7, effort="max", thinking_tokens=1_000)

    assert not body.keys() & {"temperature", "reasoning_effort"}
    assert notes == (
        "temperature dropped: the model takes none",
        "effort dropped: the model's card lists no efforts",
        "thinking budget dropped: Chat Completions has none",
    )


def test_an_unknown_effort_becomes_the_nearest_below():
    body, notes = built(card={"reasoning": "effort", "efforts": ("low", "high")}, effort="max")

    assert (body["reasoning_effort"], notes) == ("high", ("effort max became high: the model has low, high",))


def test_the_output_limit_is_the_models_at_most():
    body, notes = built(card={"output_limit": 20})

    assert (body["max_tokens"], notes) == (20, ("output limit clipped to 20: the model writes no more at once",))


def test_effort_models_get_max_completion_tokens():
    body, _ = built(card={"reasoning": "effort"})

    assert (body.get("max_completion_tokens"), body.get("max_tokens")) == (50, None)


def test_an_answers_schema_is_sent_to_models_that_take_one():
    body, _ = built(card={"structured_output": True}, output_schema=SCHEMA)

    wanted = {"name": "answer", "schema": {**SCHEMA, "additionalProperties": False}, "strict": True}
    assert body["response_format"] == {"type": "json_schema", "json_schema": wanted}
    assert body["messages"][0]["content"] == "be brief"


def test_a_schema_that_cannot_be_strict_is_sent_as_it_is():
    loose = {"type": "object", "properties": {"n": {"type": "integer"}}}
    body, _ = built(card={"structured_output": True}, output_schema=loose)

    assert body["response_format"]["json_schema"] == {"name": "answer", "schema": loose, "strict": False}


def test_models_without_structured_output_get_the_schema_as_text():
    body, _ = built(output_schema=SCHEMA)

    assert "response_format" not in body
    assert body["messages"][0]["content"].startswith("be brief\n\nThe final answer is JSON")


@pytest.mark.parametrize("kind", ["none", "automatic", "breakpoints"])
@pytest.mark.parametrize(("taken", "sent"), [(False, None), (True, "k1")])
def test_the_cache_key_goes_only_to_models_that_take_it(kind, taken, sent):
    body, _ = built(card={"cache": CacheRules(kind=kind, prompt_cache_key=taken)}, cache_key="k1")

    assert body.get("prompt_cache_key") == sent


CALLED = AssistantMessage(
    tool_calls=(ToolCall(call="1", tool="look", arguments={"at": 1}, provider_id="c9"),),
    verbatim=Verbatim(provider="chat", model="m", blocks=({"role": "assistant", "reasoning_content": "So."},)),
)


THOUGHT = {"role": "assistant", "reasoning_content": "So.", "tool_calls": [{"id": "1"}, {"id": "2"}]}


SIGNED = {"google": {"thought_signature": "s1"}}
UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}


@pytest.mark.parametrize(
    ("made_by", "wanted", "sent"),
    [("m", True, SIGNED), ("another", True, UNSIGNED), ("m", False, SIGNED), ("another", False, None)],
)
def test_an_unsigned_first_call_is_marked_where_signatures_are_required(made_by, wanted, sent):
    calls = [{"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}} for _ in range(2)]
    block = {"role": "assistant", "content": None, "tool_calls": [{**calls[0], "extra_content": SIGNED}, calls[1]]}
    called = AssistantMessage(
        tool_calls=tuple(ToolCall(call=str(n), tool="look", arguments={}) for n in (1, 2)),
        verbatim=Verbatim(provider="chat", model=made_by, blocks=(block,)),
    )
    body, _ = built(ASKED, called, card={"signed_calls": wanted})

    first, second = body["messages"][2]["tool_calls"]
    assert (first.get("extra_content"), second.get("extra_content")) == (sent, None)


def test_a_message_goes_back_to_its_own_model_as_it_came():
    body, _ = built(ASKED, CALLED)

    assert body["messages"][2] == {"role": "assistant", "reasoning_content": "So."}


def test_every_call_has_a_unique_id_that_its_result_repeats():
    unnumbered = calling(None, None)
    thought = unnumbered.model_copy(update={"verbatim": Verbatim(provider="chat", model="m", blocks=(THOUGHT,))})
    steps = [unnumbered, thought, calling("call_0"), calling("call_0"), calling("look:0")]
    history = [message for step in steps for message in (step, *(result(c.call, "ok") for c in step.tool_calls))]
    body, _ = built(ASKED, *history)

    calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    results = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert calls == results == ["call_1_1", "call_1_2", "call_4_1", "call_4_2", "call_0", "call_9_1", "look:0"]


def test_results_follow_their_calls_and_missing_ones_are_filled_in():
    body, _ = built(ASKED, calling("a", "b"), NOTE, result("2", "ok"), ASKED, result("7", "late"))

    assert body["messages"][3:] == [
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
        {"role": "tool", "tool_call_id": "a", "content": "(this call was never answered)"},
        {"role": "user", "content": "[CONTEXT]\nIt is raining."},
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "[RESULT OF look]\nlate"},
    ]


@pytest.mark.parametrize("other", [{"model": "n"}, {"provider": "else"}])
def test_another_model_is_sent_our_own_fields(other):
    body, _ = built(ASKED, CALLED, ToolMessage(call="1", tool="look", content="a cat", provider_id="c9"), card=other)

    function = {"name": "look", "arguments": '{"at":1}'}
    assert body["messages"][2:] == [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c9", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c9", "content": "a cat"},
    ]


def test_an_empty_answer_still_has_content():
    body, _ = built(ASKED, AssistantMessage())

    assert body["messages"][2] == {"role": "assistant", "content": ""}


EMPTY = {"type": "object", "properties": {}}


def test_tools_are_sent_in_the_order_given():
    tools = (ToolDefinition(name="a", description="A.", input_schema=SCHEMA), ToolDefinition(name="b"))
    body, _ = built(tools=tools)

    assert body["tools"] == [
        {"type": "function", "function": {"name": "a", "description": "A.", "parameters": SCHEMA}},
        {
            "type": "function",
            "function": {"name": "b", "description": "", "parameters": {"type": "object", "properties": {}}},
        },
    ]


def test_images_of_tools_follow_all_results_as_the_users():
    image = ToolImage(media_type="image/png", sha256="0" * 64, size_bytes=3, width=8, height=6, content_base64="AAAA")
    body, _ = built(
        ASKED,
        calling("a", "b"),
        result("1", "[image image/png, 8x6]", images=(image,)),
        result("2", "ok"),
        NOTE,
        card={"images": True},
    )

    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert body["messages"][3:] == [
        {"role": "tool", "tool_call_id": "a", "content": "[image image/png, 8x6]"},
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
        {"role": "user", "content": [{"type": "text", "text": "[IMAGES OF look, call a]"}, shown]},
        {"role": "user", "content": "[CONTEXT]\nIt is raining."},
    ]
