"""A history in turns: calls with their results, notes where they may stand, ids used once."""

from types import ModuleType
from typing import Any

import orjson
import pytest

from wayline.contracts.chat import AssistantMessage, NoteMessage, TextPart, ToolCall, ToolMessage, UserMessage, Verbatim
from wayline.llm.anthropic import request as anthropic
from wayline.llm.history_turns import Answer, Input, Result, echo, turns
from wayline.llm.openai import request as openai
from wayline.llm.openai_chat import request as openai_chat

from .cards import card, request

ASKED = UserMessage(parts=(TextPart(text="hi"),))
NOTE = NoteMessage(label="CONTEXT", text="it rains")


def calling(*calls: tuple[str, str | None], verbatim: Verbatim | None = None, tool: str = "look") -> AssistantMessage:
    return AssistantMessage(
        tool_calls=tuple(ToolCall(call=call, tool=tool, provider_id=wire_id) for call, wire_id in calls),
        verbatim=verbatim,
    )


def result(call: str, content: str = "ok") -> ToolMessage:
    return ToolMessage(call=call, tool="look", content=content)


def cut(*messages, echoes=False):
    return turns(messages, echoes=lambda _: echoes)


def test_results_come_first_in_a_turn_with_their_calls_ids():
    answer = calling(("1", "a"), ("2", "b"))

    [_, called, last] = cut(ASKED, answer, result("2"), NOTE, result("1"))

    assert called == Answer(1, answer, ("a", "b"), echoed=False)
    assert last == Input([Result("b", 2, result("2")), Result("a", 4, result("1"))], [(3, NOTE)])


def test_an_unanswered_call_gets_an_empty_result():
    [_, _, last] = cut(ASKED, calling(("1", "a")), ASKED)

    assert isinstance(last, Input)
    assert last.results == [Result("a", 1, None)]
    assert last.others == [(2, ASKED)]


def test_a_result_without_a_call_is_ordinary_input():
    [last] = cut(ASKED, result("7"))

    assert last == Input([], [(0, ASKED), (1, result("7"))])


def test_call_ids_are_unique_and_of_allowed_characters():
    history = [ASKED, calling(("1", "0")), result("1"), calling(("1", "0")), result("1"), calling(("1", "a b/c"))]

    ids = [turn.ids for turn in cut(*history) if isinstance(turn, Answer)]

    assert ids == [("0",), ("call_3_1",), ("a_b_c",)]


def test_calls_that_no_provider_numbered_are_numbered_by_their_place():
    answer = cut(ASKED, calling(("1", None), ("2", None)))[1]

    assert isinstance(answer, Answer)
    assert answer.ids == ("call_1_1", "call_1_2")


def test_an_echoed_answer_keeps_its_ids_as_they_are():
    verbatim = Verbatim(provider="p", model="m", blocks=({"type": "tool_use", "id": "x.y"},))

    answer = cut(ASKED, calling(("1", "x.y"), verbatim=verbatim), echoes=True)[1]

    assert isinstance(answer, Answer)
    assert answer.ids == ("x.y",)


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


@pytest.mark.parametrize(
    ("calls", "ids", "tool"),
    [
        ([("1", None)], ("call_3_1",), "look"),
        ([("1", "a"), ("2", "a")], ("a", "call_3_2"), "look"),
        ([("1", "before")], ("call_3_1",), "look"),
        ([("1", "a")], ("a",), "look now"),
    ],
    ids=["no id", "one id twice", "an id of before", "a name that no tool can have"],
)
def test_a_call_that_its_provider_would_refuse_is_renamed(calls: Any, ids: Any, tool: str):
    blocks = [{"type": "tool_use", "id": wire_id, "name": tool, "input": {}} for _, wire_id in calls]
    odd = calling(*calls, verbatim=Verbatim(provider="p", model="m", blocks=(THOUGHT, *blocks)), tool=tool)

    [_, _, _, answer, _] = cut(ASKED, calling(("1", "before")), result("1"), odd, echoes=True)

    assert isinstance(answer, Answer)
    assert answer.ids == ids
    assert echo(answer, is_call=lambda block: block["type"] == "tool_use", id_field="id") == [
        THOUGHT,
        *({"type": "tool_use", "id": wire_id, "name": tool.replace(" ", "_"), "input": {}} for wire_id in ids),
    ]


@pytest.mark.parametrize(
    ("name", "sent"), [("", "unnamed"), ("functions.look now!", "functions_look_now_"), ("x" * 70, "x" * 64)]
)
@pytest.mark.parametrize("wire", [anthropic, openai, openai_chat])
def test_a_name_that_a_model_invented_goes_back_as_one(wire: ModuleType, name: str, sent: str):
    history = [ASKED, calling(("1", "a"), tool=name), result("1")]

    body, _ = wire.build_body(request(*history, model=card()))

    assert orjson.dumps({"name": sent})[1:-1] in orjson.dumps(body)


def test_only_notes_closing_a_turn_may_be_system_messages():
    assert Input([], [(0, NOTE)]).closing == []
    assert Input([], [(0, ASKED), (1, NOTE), (2, NOTE)]).closing == [(1, NOTE), (2, NOTE)]
    assert Input([], [(0, ASKED), (1, NOTE), (2, ASKED)]).closing == []
    assert Input([Result("a", 0, None)], [(1, NOTE)]).closing == [(1, NOTE)]
