"""Tools and answers as JSON in plain text: what is told, what is understood, what its reader sees meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.chat import (
    AssistantMessage,
    ChatMessage,
    NoteMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from wayline.contracts.models import ModelCard
from wayline.contracts.money import Usage
from wayline.contracts.tools import ToolDefinition
from wayline.llm import Finished, ModelRequest, Piece, TextDelta, UsageSeen
from wayline.llm.json_protocol import JsonProtocol, instruction, needs_correction, read, rendered
from wayline.llm.json_protocol.spoken import answer_in
from wayline.llm.model import StopReason

LOOK = ToolDefinition(name="look", description="Look around.", input_schema={"type": "object"})
FIND = ToolDefinition(name="find")
NAMES = ("find", "look")
CALL = {"tool": "look", "parameters": {"at": 1}, "reasoning": "to see"}
LOOKED = ToolCall(call="1", tool="look", arguments={"at": 1}, reason="to see")


def envelope(**fields) -> str:
    return orjson.dumps(fields).decode()


ASKS = envelope(thinking="Where?", action="tool", tool_calls=[CALL], confidence=0.7)
ANSWERS = envelope(thinking="There.", action="respond", response="A cat.", confidence=0.9)
ASKED = AssistantMessage(thinking="Where?", tool_calls=(LOOKED,), confidence=0.7, read_as="json")
ANSWERED = AssistantMessage(thinking="There.", text="A cat.", confidence=0.9, read_as="json")


@pytest.mark.parametrize(
    "wrapped",
    ["{}", "\n{}\n", "```json\n{}\n```", "```\n{}\n```", "Sure, here it is:\n{}", "```json\n{}\n```\nDone.", "{} {{}}"],
)
@pytest.mark.parametrize(("text", "meant"), [(ASKS, ASKED), (ANSWERS, ANSWERED)])
def test_the_envelope_is_found_whatever_is_around_it(wrapped, text, meant):
    assert read(wrapped.format(text), tools=NAMES) == meant


@pytest.mark.parametrize("text", [ASKS, ANSWERS])
def test_thinking_before_the_envelope_does_no_harm(text):
    assert read(f"<think>{{never mind}}</think>\n{text}").read_as == "json"


def test_a_model_that_thinks_aloud_has_thought():
    message = read("<think>Hm.</think>" + envelope(action="respond", response="A cat."))

    assert (message.thinking, message.text) == ("Hm.", "A cat.")


@pytest.mark.parametrize(
    "broken",
    [
        ANSWERS.replace('"', "'"),
        ANSWERS[:-1],
        ANSWERS[:-1] + ",}",
        f"```json\n{ANSWERS[:-1]}",
        f"```json\n{ANSWERS[:-1]}\n```",
        ANSWERS.replace('"thinking"', "thinking").replace('"action"', "action"),
        ANSWERS.replace(',"response"', ' "response"'),
        f"Well, {ANSWERS[:-1]}",
    ],
)
def test_a_broken_envelope_is_mended(broken):
    assert read(broken, tools=NAMES) == ANSWERED.model_copy(update={"read_as": "repaired"})


def test_line_breaks_inside_a_string_are_meant():
    assert read('{"action": "respond", "response": "one\ntwo"}').text == "one\ntwo"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            "<thinking>There.</thinking>\n<response>A cat.</response>",
            AssistantMessage(thinking="There.", text="A cat.", read_as="tags"),
        ),
        (
            "<thinking>There.</thinking><action>respond</action><response>A\ncat.",
            AssistantMessage(thinking="There.", text="A\ncat.", read_as="tags"),
        ),
        (
            '<action>{"tool": "look", "parameters": {"at": 1}, "reasoning": "to see"}</action>',
            AssistantMessage(tool_calls=(LOOKED,), read_as="tags"),
        ),
        (
            f"<action>tool</action><tool_calls>[{envelope(**CALL)}]</tool_calls><confidence>0.5</confidence>",
            AssistantMessage(tool_calls=(LOOKED,), confidence=0.5, read_as="tags"),
        ),
        (
            'Let me see.\n<tool_call>\n{"name": "look", "arguments": {"at": 1}}\n</tool_call>',
            AssistantMessage(tool_calls=(LOOKED.model_copy(update={"reason": None}),), read_as="tags"),
        ),
    ],
)
def test_tags_are_understood_where_there_is_no_envelope(text, meant):
    assert read(text, tools=NAMES) == meant


@pytest.mark.parametrize(
    "text",
    [
        "A cat.",
        "",
        'The answer is {"cat": true}.',
        '```json\n{"response_time": 5, "action_items": []}\n```',
        '{"response": "A cat.", "colour": "black"}',
        '{"action": "scratch"}',
        "Use `<response>` to wrap it: <response>x</response>",
        "{",
    ],
)
def test_anything_else_is_the_answer_and_marked_so(text):
    assert read(text, tools=NAMES) == AssistantMessage(text=text, read_as="text")


@pytest.mark.parametrize(
    "text",
    [
        {"tool_calls": [CALL]},
        {"action": "tool", "tool_calls": CALL},
        {"action": "tool", "tool_calls": [{"name": "look", "arguments": '{"at": 1}', "reason": "to see"}]},
        {
            "action": "tool",
            "tool_calls": [{"function": {"name": "look", "arguments": {"at": 1}}, "reasoning": "to see"}],
        },
        {"action": "tool", **CALL},
        {"action": "look", "parameters": {"at": 1}, "reasoning": "to see"},
        {"action": " Tool ", "tool_calls": [CALL, "nonsense", {"parameters": {}}]},
        {"action": "respond", "tool_calls": [CALL], "response": ""},
    ],
)
def test_a_call_is_a_call_however_it_is_written(text):
    assert read(envelope(**text), tools=NAMES).tool_calls == (LOOKED,)


def test_an_answer_with_calls_beside_it_is_an_answer():
    assert read(envelope(action="respond", tool_calls=[CALL], response="A cat.")).tool_calls == ()


def test_a_text_of_line_ends_alone_is_read_at_once():
    # Models that lose their way write them up to their limit.
    assert read("\n" * 300_000).text == ""


def test_parallel_calls_are_numbered():
    message = read(envelope(action="tool", tool_calls=[CALL, {"tool": "find"}]))

    assert [(call.call, call.tool) for call in message.tool_calls] == [("1", "look"), ("2", "find")]


def test_a_response_that_is_no_string_becomes_json_text():
    assert read(envelope(action="respond", response={"cats": 1})).text == '{"cats":1}'


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (0.5, 0.5),
        (1, 1.0),
        ("0.8", 0.8),
        ("80%", 0.8),
        (80, 0.8),
        (-1, 0.0),
        ("high", None),
        (True, None),
        (None, None),
    ],
)
def test_confidence_is_from_0_to_1_or_unknown(text, meant):
    assert read(envelope(action="respond", response="x", confidence=text)).confidence == meant


def test_a_call_that_the_output_limit_cut_keeps_no_half_parameters():
    calls = '[{"tool": "look", "parameters": {"at": 1}}, {"tool": "write", "parameters": {"text": "half of'
    text = f'{{"action": "tool", "tool_calls": {calls}'
    first, last = read(text, cut=True).tool_calls

    assert first.arguments == {"at": 1}
    assert last.arguments.keys() == {"_unreadable"}


def test_an_answer_cut_by_the_output_limit_keeps_its_text():
    assert read('{"action": "respond", "response": "A cat and', cut=True).text == "A cat and"


@given(st.text(max_size=120) | st.text(alphabet='{}[]"<>/:, \nactionresponsetoolthinking_', max_size=120))
def test_any_text_is_understood_somehow(text):
    assert read(text, tools=NAMES).role == "assistant"


@pytest.mark.parametrize(
    ("message", "offered", "needed"),
    [
        (AssistantMessage(text="A cat.", read_as="text"), NAMES, True),
        (AssistantMessage(text="A cat.", read_as="text"), (), False),
        (AssistantMessage(text="", read_as="text"), (), True),
        (AssistantMessage(text=" ", read_as="json"), NAMES, True),
        (ANSWERED, NAMES, False),
        (ASKED, NAMES, False),
        (AssistantMessage(text="A cat."), NAMES, False),
        (AssistantMessage(), NAMES, False),
    ],
)
def test_a_correction_is_asked_for_where_the_message_cannot_be_used(message, offered, needed):
    assert (needs_correction(message, offered) is not None) == needed


def test_the_instruction_is_the_same_for_the_same_tools():
    assert instruction([LOOK, FIND]) == instruction([FIND, LOOK])
    assert instruction([LOOK]) != instruction([FIND])
    assert "Look around." in instruction([LOOK])


def test_the_instruction_states_when_there_are_no_tools():
    assert "You have no tools" in instruction([])


words = st.text(max_size=8)
wanted_calls = st.builds(
    ToolCall,
    call=st.sampled_from(["1", "2"]),
    tool=st.sampled_from(NAMES),
    arguments=st.dictionaries(words, words, max_size=2),
    reason=st.none() | words,
)
messages = st.one_of(
    st.builds(UserMessage, parts=st.tuples(st.builds(TextPart, text=words))),
    st.builds(NoteMessage, label=st.just("CONTEXT"), text=words),
    st.builds(ToolMessage, call=st.just("1"), tool=st.sampled_from(NAMES), content=words, failed=st.booleans()),
    st.builds(
        AssistantMessage,
        text=words,
        tool_calls=st.lists(wanted_calls, max_size=2).map(tuple),
        thinking=words,
        confidence=st.none() | st.floats(0, 1),
    ),
)


@given(st.lists(messages, max_size=6), messages)
def test_a_longer_conversation_only_adds_to_its_rendering(before, more):
    assert rendered([*before, more])[: len(before)] == rendered(before)
    assert rendered(before) == rendered(before)


@given(st.lists(wanted_calls, min_size=1, max_size=3), words, st.none() | st.floats(0, 1))
def test_a_rendered_answer_reads_back_as_the_same_message(wanted, thinking, confidence):
    numbered = tuple(
        call.model_copy(update={"call": str(n), "reason": call.reason or None}) for n, call in enumerate(wanted, 1)
    )
    message = AssistantMessage(tool_calls=numbered, thinking=thinking, confidence=confidence, read_as="json")

    [told] = rendered([message])

    assert isinstance(told, AssistantMessage)
    assert read(told.text, tools=NAMES) == message


@given(words, words)
def test_an_answer_reads_the_same_after_it_was_told(text, thinking):
    message = AssistantMessage(text=text, thinking=thinking, read_as="json")

    [told] = rendered([message])

    assert isinstance(told, AssistantMessage)
    assert read(told.text) == message


def test_tool_results_become_text():
    result = ToolMessage(call="1", tool="look", content="a cat", provider_id="c9")
    failed = result.model_copy(update={"failed": True})

    assert rendered([result, failed]) == (
        UserMessage(parts=(TextPart(text="[RESULT of call 1, look]\na cat"),)),
        UserMessage(parts=(TextPart(text="[ERROR of call 1, look]\na cat"),)),
    )


@dataclass
class Writer:
    """A model that only writes text, in the pieces it is given."""

    pieces: list[str]
    stop: StopReason = "end"
    message: AssistantMessage | None = None
    asked: list[ModelRequest] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        self.asked.append(request)
        for piece in self.pieces:
            yield TextDelta(piece)
        yield UsageSeen(Usage(output=1))
        yield Finished(self.message or AssistantMessage(text="".join(self.pieces)), Usage(output=2), self.stop, ("n",))

    async def close(self) -> None:
        return None


def request(*messages: ChatMessage, tools: tuple[ToolDefinition, ...] = (FIND, LOOK), **more) -> ModelRequest:
    card = ModelCard(provider="chat", model="m", tier="standard", tools="json")
    asked = UserMessage(parts=(TextPart(text="hi"),))
    return ModelRequest(card, "be brief", messages or (asked,), tools, 50, "a1", **more)


async def ask(writer: Writer, asked: ModelRequest | None = None) -> tuple[str, Finished]:
    pieces = [piece async for piece in JsonProtocol(writer).stream(asked or request())]
    *before, finished = pieces
    assert isinstance(finished, Finished)
    return "".join(piece.text for piece in before if isinstance(piece, TextDelta)), finished


async def test_the_model_is_asked_in_words():
    writer = Writer([ANSWERS])
    await ask(writer, request(UserMessage(parts=(TextPart(text="hi"),)), ASKED, output_schema={"type": "object"}))

    [asked] = writer.asked
    assert (asked.tools, asked.output_schema) == ((), None)
    assert asked.system.startswith("be brief\n\n# How to answer")
    assert "valid by this JSON Schema" in asked.system
    assert asked.messages[1] == AssistantMessage(text=ASKS)


async def test_an_answer_is_streamed_without_its_envelope():
    streamed, finished = await ask(Writer(list(ANSWERS)))

    assert streamed == "A cat."
    assert finished == Finished(ANSWERED, Usage(output=2), "end", ("n",))


async def test_a_changed_answer_is_not_appended_to_the_streamed_one():
    streamed, finished = await ask(Writer(list('{"action": "respond", "response": "x", "response": "yes"}')))

    assert (streamed, finished.message.text) == ("x", "yes")


async def test_calls_are_not_streamed():
    streamed, finished = await ask(Writer(list(ASKS)))

    assert (streamed, finished.message, finished.stop_reason) == ("", ASKED, "tools")


async def test_text_that_breaks_the_protocol_is_not_streamed():
    streamed, finished = await ask(Writer(["A cat."]))

    assert (streamed, finished.message.read_as) == ("", "text")


async def test_plain_text_of_an_agent_without_tools_is_its_answer():
    streamed, finished = await ask(Writer(["A ", "cat."]), request(tools=()))

    assert (streamed, finished.message) == ("A cat.", AssistantMessage(text="A cat.", read_as="text"))


async def test_a_model_with_native_tools_after_all_is_understood():
    native = AssistantMessage(tool_calls=(LOOKED,))
    _, finished = await ask(Writer([], stop="tools", message=native))

    assert finished.message == native


async def test_thinking_that_came_natively_is_kept():
    text = envelope(action="respond", response="A cat.")
    _, finished = await ask(Writer([], message=AssistantMessage(text=text, thinking="Hm.")))

    assert finished.message.thinking == "Hm."


async def test_an_unusual_stop_reason_is_kept():
    _, finished = await ask(Writer([ASKS[:-30]], stop="max_tokens"))

    assert finished.stop_reason == "max_tokens"


@given(
    st.text(st.characters(codec="utf-8"), max_size=30),
    st.sampled_from(["{}", "```json\n{}\n```", "<think>x</think>{}"]),
    st.integers(1, 9),
)
def test_what_is_streamed_is_the_answer_however_the_text_is_cut(answer, wrapped, size):
    text = wrapped.replace("{}", envelope(thinking="t", action="respond", response=answer))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    streamed, finished = asyncio.run(ask(Writer(pieces)))

    assert finished.message.text == answer
    # A blank answer is one to be corrected.
    assert streamed == answer or not answer.strip()


@given(
    st.lists(st.sampled_from(["a", " ", "\n", "<", ">", "</", "</resp", "<action>", "<b>", "</response>"])).map("".join)
)
def test_tagged_answers_are_streamed_too_and_no_tag_with_them(answer):
    text = f"<thinking>t</thinking>\n<response>{answer}</response>"
    final = read(text).text

    for end in range(len(text) + 1):
        assert final.startswith(answer_in(text[:end]))


def test_a_long_answer_is_looked_at_a_bounded_number_of_times(monkeypatch):
    from wayline.llm.json_protocol import spoken

    looks = []
    monkeypatch.setattr(spoken, "answer_in", lambda text: looks.append(text) or "")
    watcher = spoken.Spoken()
    for _ in range(100_000):
        watcher.add("x")

    assert sum(map(len, looks)) < 100_000 * spoken.LOOKS_PER_TEXT * 2
