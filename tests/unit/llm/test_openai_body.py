"""What the Responses API is asked, feature by feature."""

import base64
import json

import pytest

from wayline.contracts.chat import AssistantMessage, FilePart, ImagePart, TextPart, UserMessage, Verbatim
from wayline.llm import File, ModelError
from wayline.llm.inputs import encoded
from wayline.llm.openai import request as wire

from .cards import ASK, CITY, LOOK, MARKS, calling, note, request, result, user
from .cards import card as any_card

MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]}


def card(**more):
    return any_card(**{"provider": "openai", "model": "gpt", **more})


def text(words: str, **more) -> dict:
    return {"type": "input_text", "text": words, **more}


def message(role: str, *parts) -> dict:
    return {"type": "message", "role": role, "content": list(parts)}


def items(*messages, model=None, **more) -> list[dict]:
    return wire.body(request(*messages, model=model or card(), **more))["input"]


def test_a_plain_request_is_exactly_this_and_stores_nothing():
    assert wire.body(request(user("hi"), model=card(), tools=(LOOK, ASK), cache_key="acme/helper/3")) == {
        "model": "gpt",
        "max_output_tokens": 5_000,
        "instructions": "be brief",
        "tools": [
            {
                "type": "function",
                "name": name,
                "description": f"{name.title()}.",
                "parameters": {"type": "object", "properties": properties},
                "strict": False,
            }
            for name, properties in (("ask", {}), ("look", {"at": {}}))
        ],
        "prompt_cache_key": "acme/helper/3",
        "input": [message("user", text("hi"))],
        "store": False,
        "stream": True,
    }


@pytest.mark.parametrize("reasoning", ["effort", "adaptive"])
def test_only_a_model_that_reasons_is_asked_for_what_it_thought(reasoning):
    thinks = wire.body(request(user("hi"), model=card(reasoning=reasoning)))
    does_not = wire.body(request(user("hi"), model=card()))

    assert (thinks["include"], thinks["reasoning"]) == (["reasoning.encrypted_content"], {"summary": "auto"})
    assert not does_not.keys() & {"include", "reasoning"}


def test_calls_and_results_are_items_of_their_own():
    history = (user("hi"), calling("a", "b", text="wait"), result("2", "dog"), note("rain"), result("1", "cat"))

    assert items(*history) == [
        message("user", text("hi")),
        {"type": "message", "role": "assistant", "content": "wait"},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"at":1}'},
        {"type": "function_call", "call_id": "b", "name": "look", "arguments": '{"at":2}'},
        {"type": "function_call_output", "call_id": "b", "output": "dog"},
        {"type": "function_call_output", "call_id": "a", "output": "cat"},
        message("user", text("[CONTEXT]\nrain")),
    ]


def test_a_note_is_the_developers_where_the_model_listens_to_one():
    assert items(user("hi"), note("rain"), user("so"), model=card(system_messages=True)) == [
        message("user", text("hi")),
        message("developer", text("[CONTEXT]\nrain")),
        message("user", text("so")),
    ]


def test_items_go_back_unchanged_and_only_to_their_model():
    def answer(provider: str, model: str) -> list[dict]:
        spoken = AssistantMessage(text="so", verbatim=Verbatim(provider=provider, model=model, blocks=(SEALED, SAID)))
        return items(user("hi"), spoken, user("go on"))[1:-1]

    assert answer("openai", "gpt") == [SEALED, SAID]
    assert (
        answer("openai", "other")
        == answer("anthropic", "gpt")
        == [{"type": "message", "role": "assistant", "content": "so"}]
    )


def test_images_documents_and_text_are_sent_inline():
    parts = (ImagePart(document_id="i"), FilePart(document_id="p"), FilePart(document_id="t"), TextPart(text="see"))
    files = {
        "i": File("cat.png", "image/png", encoded("image/png", b"png")),
        "p": File("a.pdf", "application/pdf", encoded("application/pdf", b"pdf")),
        "t": File("a.json", "application/json", encoded("application/json", b"{}")),
    }

    def url(media: str, data: bytes) -> str:
        return f"data:{media};base64,{base64.b64encode(data).decode()}"

    assert items(UserMessage(parts=parts), model=card(images=True, files=True), files=files) == [
        message(
            "user",
            {"type": "input_image", "image_url": url("image/png", b"png"), "detail": "high"},
            {"type": "input_file", "filename": "a.pdf", "file_data": url("application/pdf", b"pdf")},
            text("[FILE a.json]\n{}"),
            text("see"),
        )
    ]


def test_an_image_for_a_model_without_eyes_is_refused():
    with pytest.raises(ModelError) as caught:
        items(
            UserMessage(parts=(ImagePart(document_id="i"),)),
            files={"i": File("a.png", "image/png", encoded("image/png", b""))},
        )

    assert caught.value.code == "unsupported_input"


def test_a_too_long_cache_key_becomes_a_distinct_short_one():
    keys = [wire.body(request(user("hi"), model=card(), cache_key="k" * n))["prompt_cache_key"] for n in (65, 66)]

    assert len(set(keys)) == 2
    assert {len(key) for key in keys} == {64}


def test_markers_stand_on_the_system_prompt_and_requested_breakpoints():
    history = (user("hi"), calling("a"), result("1", "cat"), user("so"))

    found = wire.body(request(*history, model=card(cache=MARKS), breakpoints=(1, 2)))

    assert "instructions" not in found
    assert found["input"] == [
        message("developer", text("be brief", **MARK)),
        message("user", text("hi", **MARK)),
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"at":1}'},
        {"type": "function_call_output", "call_id": "a", "output": [text("cat", **MARK)]},
        message("user", text("so")),
    ]


def test_beyond_the_models_marker_limit_the_later_markers_win():
    found = items(*(user(str(n)) for n in range(9)), model=card(cache=MARKS), breakpoints=tuple(range(9)))

    assert [each["content"][0]["text"] for each in found if MARK.items() <= each["content"][0].items()] == [
        "be brief",
        "6",
        "7",
        "8",
    ]


@pytest.mark.parametrize(
    ("model", "wanted", "sent", "notes"),
    [
        ({"reasoning": "effort"}, {"effort": "high"}, {"reasoning": {"effort": "high", "summary": "auto"}}, 0),
        ({"reasoning": "effort"}, {}, {"reasoning": {"summary": "auto"}}, 0),
        (
            {"reasoning": "effort", "efforts": ("low", "high")},
            {"effort": "xhigh"},
            {"reasoning": {"effort": "high", "summary": "auto"}},
            1,
        ),
        ({}, {"effort": "high"}, {}, 1),
        ({"temperature": True}, {"temperature": 0.3}, {"temperature": 0.3}, 0),
        ({}, {"temperature": 0.3}, {}, 1),
        ({}, {"output_schema": CITY}, {}, 1),
    ],
)
def test_a_knob_the_model_lacks_is_noted_instead_of_sent(model, wanted, sent, notes):
    found, noted = wire.build_body(request(user("hi"), model=card(**model), **wanted))

    assert ({key: found[key] for key in ("reasoning", "temperature", "text") if key in found}, len(noted)) == (
        sent,
        notes,
    )


def test_only_a_closed_and_complete_schema_is_strict():
    optional = {"type": "object", "properties": {"city": {"type": "string"}}}

    def sent(schema: dict) -> tuple[dict, int]:
        found, notes = wire.build_body(request(user("hi"), model=card(structured_output=True), output_schema=schema))
        return found["text"]["format"], len(notes)

    named = {"type": "json_schema", "name": "answer"}
    assert sent(CITY) == ({**named, "schema": {**CITY, "additionalProperties": False}, "strict": True}, 0)
    assert sent(optional) == ({**named, "schema": optional, "strict": False}, 1)


def test_only_an_object_is_enforced():
    listed = {"type": "array", "items": CITY}
    found, _ = wire.build_body(request(user("hi"), model=card(structured_output=True), output_schema=listed))

    assert (found["text"]["format"]["schema"], found["text"]["format"]["strict"]) == (listed, False)


@pytest.mark.parametrize("marks", [True, False])
def test_a_model_without_structured_output_gets_the_schema_as_text(marks):
    caches = {"cache": MARKS} if marks else {}
    found, _ = wire.build_body(request(user("hi"), model=card(**caches), output_schema=CITY))

    instructions = found["input"][0]["content"][0]["text"] if marks else found["instructions"]
    assert instructions.endswith(json.dumps(CITY, separators=(",", ":")))


def test_the_output_limit_is_the_models_at_most():
    assert wire.build_body(request(user("hi"), model=card(output_limit=100)))[0]["max_output_tokens"] == 100
