"""What the Messages API is asked, feature by feature."""

import base64

import pytest

from wayline.contracts.chat import AssistantMessage, FilePart, ImagePart, TextPart, UserMessage, Verbatim
from wayline.llm import File, ModelError
from wayline.llm.anthropic.request import body, build_body
from wayline.llm.inputs import encoded

from .cards import ASK, CITY, LOOK, MARKS, calling, card, note, request, result, user

MARK = {"cache_control": {"type": "ephemeral"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s=="}
SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}}


def text(words: str, **more) -> dict:
    return {"type": "text", "text": words, **more}


def thought_by(model: str, *blocks: dict, provider: str = "anthropic") -> AssistantMessage:
    return AssistantMessage(text="so", verbatim=Verbatim(provider=provider, model=model, blocks=blocks))


def test_a_plain_request_is_exactly_this():
    assert body(request(user("hi"), model=card(), tools=(LOOK, ASK))) == {
        "model": "claude",
        "max_tokens": 5_000,
        "system": [text("be brief")],
        "tools": [
            {"name": "ask", "description": "Ask.", "input_schema": {"type": "object", "properties": {}}},
            {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {"at": {}}}},
        ],
        "messages": [{"role": "user", "content": [text("hi")]}],
        "stream": True,
    }


def test_results_lead_the_one_user_turn_between_two_answers():
    history = (
        user("hi"),
        calling("a", "b", text="wait"),
        result("1", "cat"),
        note("rain"),
        result("2", "!", failed=True),
    )

    assert body(request(*history, model=card()))["messages"] == [
        {"role": "user", "content": [text("hi")]},
        {
            "role": "assistant",
            "content": [
                text("wait"),
                {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {"at": 2}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "cat"},
                {"type": "tool_result", "tool_use_id": "b", "content": "!", "is_error": True},
                text("[CONTEXT]\nrain"),
            ],
        },
    ]


def test_closing_notes_are_a_system_message_for_models_that_take_one():
    modern = card(system_messages=True)

    after = body(request(user("hi"), note("a"), note("b"), model=modern))["messages"]
    between = body(request(user("hi"), note("a"), user("you"), model=modern))["messages"]
    first = body(request(note("a"), user("hi"), model=modern))["messages"]
    alone = body(request(user("hi"), AssistantMessage(text="ho"), note("a"), model=modern))["messages"]

    assert [each["role"] for each in after] == ["user", "system"]
    assert after[1]["content"] == [text("[CONTEXT]\na"), text("[CONTEXT]\nb")]
    assert between == [{"role": "user", "content": [text("hi"), text("[CONTEXT]\na"), text("you")]}]
    assert [each["role"] for each in first] == ["user"]
    assert [each["role"] for each in alone] == ["user", "assistant", "user"]


def test_a_style_and_an_orphan_result_become_text():
    styled = UserMessage(parts=(TextPart(text="hi"),), style="terse")

    [message] = body(request(styled, result("9", "cat"), model=card()))["messages"]

    assert message["content"] == [text("hi"), text("Answer in this style: terse"), text("[RESULT OF look]\ncat")]


def test_an_answer_without_words_is_still_one():
    assert body(request(user("hi"), AssistantMessage(), user("?"), model=card()))["messages"][1] == {
        "role": "assistant",
        "content": [text("(no answer)")],
    }


def test_blocks_go_back_unchanged_and_thinking_only_to_its_model():
    spoken = thought_by("claude", THOUGHT, SEARCH, text("so"))

    def answer(message: AssistantMessage) -> list[dict]:
        return body(request(user("hi"), message, user("go on"), model=card()))["messages"][1]["content"]

    assert answer(spoken) == [THOUGHT, SEARCH, text("so")]
    assert answer(thought_by("other", THOUGHT, SEARCH, text("so"))) == [SEARCH, text("so")]
    assert answer(thought_by("other", THOUGHT)) == [text("so")]
    assert answer(thought_by("claude", THOUGHT, text("?"), provider="openai")) == [text("so")]


def test_images_documents_and_text_are_sent_inline():
    parts = (TextPart(text="see"), *(ImagePart(document_id="i"), FilePart(document_id="p"), FilePart(document_id="t")))
    files = {
        "i": File("cat.png", "image/png", encoded("image/png", b"png")),
        "p": File("a.pdf", "application/pdf", encoded("application/pdf", b"pdf")),
        "t": File("a.md", "text/markdown; charset=utf-8", encoded("text/markdown; charset=utf-8", "é".encode())),
    }

    [message] = body(request(UserMessage(parts=parts), model=card(images=True, files=True), files=files))["messages"]

    def source(media: str, data: bytes) -> dict:
        return {"type": "base64", "media_type": media, "data": base64.b64encode(data).decode()}

    assert message["content"] == [
        text("see"),
        {"type": "image", "source": source("image/png", b"png")},
        {"type": "document", "source": source("application/pdf", b"pdf"), "title": "a.pdf"},
        text("[FILE a.md]\né"),
    ]


@pytest.mark.parametrize(
    "file",
    [
        None,
        File("cat.png", "image/png", encoded("image/png", b"")),
        File("a.pdf", "application/pdf", encoded("application/pdf", b"")),
        File("a.mp3", "audio/mpeg", encoded("audio/mpeg", b"")),
    ],
)
def test_an_unsupported_file_is_refused(file):
    asking = request(UserMessage(parts=(FilePart(document_id="d"),)), model=card(), files={"d": file} if file else {})

    with pytest.raises(ModelError) as caught:
        body(asking)

    assert (caught.value.code, caught.value.retryable) == ("unsupported_input", False)


def test_markers_stand_only_on_the_system_prompt_and_requested_breakpoints():
    history = (user("hi"), thought_by("claude", text("so"), THOUGHT), user("a"), note("n"), user("b"))
    asking = request(*history, model=card(cache=MARKS), tools=(LOOK,), breakpoints=(0, 1, 3))

    found = body(asking)

    assert found["system"] == [text("be brief", **MARK)]
    assert "cache_control" not in found["tools"][0]
    assert [each["content"] for each in found["messages"]] == [
        [text("hi", **MARK)],
        [text("so", **MARK), THOUGHT],
        [text("a"), text("[CONTEXT]\nn", **MARK), text("b")],
    ]
    assert history[1].verbatim and history[1].verbatim.blocks == (text("so"), THOUGHT)


def test_beyond_the_models_marker_limit_the_later_markers_win():
    asking = request(*(user(str(n)) for n in range(9)), model=card(cache=MARKS), breakpoints=tuple(range(9)))
    bare = request(user("a"), user("b"), model=card(cache=MARKS), system="", breakpoints=(0, 1))
    tools_only = request(user("a"), model=card(cache=MARKS), system="", tools=(LOOK,))

    marked = [b["text"] for b in body(asking)["messages"][0]["content"] if "cache_control" in b]
    assert marked == ["6", "7", "8"]
    assert all("cache_control" in b for b in body(bare)["messages"][0]["content"])
    assert body(tools_only)["tools"][0]["cache_control"] == {"type": "ephemeral"}


def test_a_model_that_keeps_nothing_by_markers_gets_none():
    assert "cache_control" not in str(body(request(user("hi"), model=card(), breakpoints=(0,))))


@pytest.mark.parametrize(
    ("model", "wanted", "sent", "notes"),
    [
        ({"reasoning": "adaptive"}, {}, {"thinking": {"type": "adaptive", "display": "summarized"}}, 0),
        (
            {"reasoning": "adaptive", "efforts": ("low", "high")},
            {"effort": "high"},
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}},
            0,
        ),
        (
            {"reasoning": "adaptive", "efforts": ("low", "medium")},
            {"effort": "max", "thinking_tokens": 9_000},
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "medium"}},
            1,
        ),
        (
            {"reasoning": "adaptive", "efforts": ("low",)},
            {"effort": "none"},
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
            1,
        ),
        (
            {"reasoning": "adaptive", "efforts": ("none", "low")},
            {"effort": "none"},
            {"thinking": {"type": "disabled"}},
            0,
        ),
        ({"reasoning": "effort"}, {"effort": "low"}, {"output_config": {"effort": "low"}}, 0),
        (
            {"reasoning": "budget"},
            {"thinking_tokens": 2_000, "effort": "high"},
            {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
            0,
        ),
        (
            {"reasoning": "budget"},
            {"thinking_tokens": 9_000},
            {"thinking": {"type": "enabled", "budget_tokens": 3_976}},
            1,
        ),
        ({"reasoning": "budget"}, {"thinking_tokens": 9_000, "max_output_tokens": 1_500}, {}, 1),
        ({"reasoning": "budget"}, {"effort": "high"}, {}, 1),
        ({}, {"effort": "high"}, {}, 1),
        ({}, {"effort": "none"}, {}, 0),
        ({"temperature": True}, {"temperature": 0.0}, {"temperature": 0.0}, 0),
        ({}, {"temperature": 0.7}, {}, 1),
        (
            {"reasoning": "budget", "temperature": True},
            {"thinking_tokens": 2_000, "temperature": 0.7},
            {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
            1,
        ),
        (
            {"structured_output": True},
            {"output_schema": CITY},
            {"output_config": {"format": {"type": "json_schema", "schema": {**CITY, "additionalProperties": False}}}},
            0,
        ),
        ({"structured_output": True}, {"output_schema": {"type": "object"}}, {}, 1),
        ({}, {"output_schema": CITY}, {}, 1),
    ],
)
def test_a_knob_the_model_lacks_is_noted_instead_of_sent(model, wanted, sent, notes):
    found, noted = build_body(request(user("hi"), model=card(**model), **wanted))

    knobs = {key: found[key] for key in ("thinking", "output_config", "temperature") if key in found}
    assert (knobs, len(noted)) == (sent, notes)


@pytest.mark.parametrize(
    ("model", "schema", "words"),
    [
        ({}, CITY, True),
        ({"structured_output": True}, {"type": "object"}, True),
        ({"structured_output": True}, CITY, False),
    ],
)
def test_a_schema_that_is_not_enforced_is_asked_for_in_words(model, schema, words):
    [system] = build_body(request(user("hi"), model=card(**model), output_schema=schema))[0]["system"]

    assert ("The final answer is JSON" in system["text"]) == words


def test_the_output_limit_is_the_models_at_most():
    found, notes = build_body(request(user("hi"), model=card(output_limit=100)))

    assert found["max_tokens"] == 100
    assert notes == ("output limit clipped to 100: the model writes no more at once",)


def test_budgeted_thinking_does_not_begin_within_a_tool_turn():
    history = (user("hi"), calling("a"), result("1", "cat"))

    found, notes = build_body(request(*history, model=card(reasoning="budget"), thinking_tokens=2_000))

    assert "thinking" not in found
    assert notes[0].startswith("thinking dropped")
