"""The executor's own tools: a door to later tools, and the way back to what was shortened."""

from __future__ import annotations

import pytest

from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import ToolCall
from wayline.contracts.tools import RECALL, USE_TOOL, Effect, ToolDefinition
from wayline.executor.prompt.builtin_tools import (
    RECALLED_CHARS,
    WholeResult,
    asked_for,
    may_use,
    pin,
    recalled,
    refusal,
)
from wayline.journal import Call
from wayline.testkit.jobs import job_with

JOB = job_with(
    config=AgentConfig(tools=("book__*", "look")),
    offered=(ToolDefinition(name="look", effect=Effect.READ),),
    discovered=(ToolDefinition(name="book__page", effect=Effect.IDEMPOTENT),),
)
WHOLE = "".join(f"line {n}: {'blue' if n == 700 else 'grey'}\n" for n in range(1_000))


def dispatched(**arguments) -> ToolCall:
    return Call(wanted=ToolCall(call="1", tool=USE_TOOL, arguments=arguments, provider_id="p1")).meant


def test_a_use_tool_call_becomes_the_named_tools_call():
    meant = dispatched(name="book__page", arguments={"number": 3})

    assert meant == ToolCall(call="1", tool="book__page", arguments={"number": 3}, provider_id="p1")


def test_arguments_written_as_text_are_read():
    assert dispatched(name="book__page", arguments='{"number": 3}').arguments == {"number": 3}


def test_a_tool_without_arguments_needs_none():
    assert dispatched(name="look").arguments == {}


@pytest.mark.parametrize(
    "arguments",
    [{}, {"name": ""}, {"name": 7}, {"name": "look", "arguments": [1]}, {"name": "x", "arguments": "[oops"}],
)
def test_an_unreadable_use_tool_call_is_answered_with_the_missing_field(arguments):
    answer = refusal(JOB, dispatched(**arguments))

    assert answer is not None and answer.error is not None
    assert answer.error.code == "invalid_arguments"
    assert "`name`" in answer.error.message


def test_a_tool_outside_the_patterns_is_refused_with_the_nearest():
    answer = refusal(JOB, dispatched(name="bok_page", arguments={}))

    assert answer is not None and answer.error is not None
    assert (answer.error.code, "'book__page'" in answer.error.message) == ("unknown_tool", True)


def test_an_unlisted_tool_within_the_patterns_goes_to_the_registry():
    assert refusal(JOB, dispatched(name="book__index", arguments={})) is None


@pytest.mark.parametrize(
    ("patterns", "usable"),
    [(("*",), False), (("*", "web_search"), True), (("web_*",), True), (("web_fetch",), False)],
)
def test_web_tools_are_for_agents_that_name_them(patterns: tuple[str, ...], usable: bool):
    assert may_use(job_with(config=AgentConfig(tools=patterns)), "web_search") is usable


def test_a_newer_definition_counts():
    newer = ToolDefinition(name="look", effect=Effect.ONCE)

    assert job_with(offered=JOB.tools.offered, discovered=(newer,)).tools.definition("look") == newer
    assert JOB.tools.definition("nobody") is None


@pytest.mark.parametrize(
    ("patterns", "listed", "own"),
    [
        (("*",), ("a",), {USE_TOOL, RECALL}),
        (("*",), (), {USE_TOOL, RECALL}),
        (("a",), ("a",), {RECALL}),
        (("a", "late"), ("a",), {USE_TOOL, RECALL}),
        ((), (), set()),
    ],
)
def test_use_tool_is_there_where_more_could_come(patterns, listed, own):
    pinned = pin(patterns, [ToolDefinition(name=name) for name in listed])

    assert {tool.name for tool in pinned} - set(listed) == own
    assert [tool.name for tool in pinned] == sorted(tool.name for tool in pinned)


def recall(**arguments) -> str:
    answer = recalled(ToolCall(call="1", tool=RECALL, arguments=arguments), WholeResult(WHOLE, strangers=False))
    return answer.content if answer.error is None else answer.error.message


def test_a_result_is_read_back_piece_by_piece_to_its_end():
    text, begin = "", 0
    while "this is the end" not in (answer := recall(**{"from": begin})):
        piece, _, note = answer.rpartition("\n[Characters ")
        text, begin = text + piece, int(note.split("from=")[1].rstrip("]"))
        assert begin <= len(text) + RECALLED_CHARS
    text += answer.rpartition("\n[Characters ")[0]

    assert text == WHOLE


def test_a_query_finds_its_places_and_says_where_they_are():
    answer = recall(query="BLUE")

    assert "line 700: blue" in answer and "line 100:" not in answer
    begin = int(answer.split("[From character ")[1].split("]")[0])
    assert answer.split("]\n", 1)[1] == WHOLE[begin : begin + len(answer.split("]\n", 1)[1])]


def test_a_query_that_finds_everything_is_answered_within_the_limit():
    assert len(recall(query="line grey")) <= RECALLED_CHARS


def test_a_query_that_finds_nothing_says_so():
    assert recall(query="magenta").startswith("[None of the words of 'magenta'")


@pytest.mark.parametrize("begin", [-1, len(WHOLE) + 1, "ten", True])
def test_a_place_outside_of_the_result_is_refused(begin):
    assert recall(**{"from": begin}) == f"`from` is a character between 0 and {len(WHOLE)}"


def test_the_result_is_named_by_job_step_and_call():
    assert asked_for(ToolCall(call="1", tool=RECALL, arguments={"step": 3, "call": 2})) == (None, 3, "2")
    named = {"job": "j1", "step": 3, "call": "2"}
    assert asked_for(ToolCall(call="1", tool=RECALL, arguments=named)) == ("j1", 3, "2")
    for arguments in ({}, {"step": "3", "call": "1"}, {"step": 3}, {"step": True, "call": "1"}):
        refused = asked_for(ToolCall(call="1", tool=RECALL, arguments=arguments))
        assert not isinstance(refused, tuple) and refused.error is not None


def test_a_result_that_is_not_there_is_said_not_to_be():
    answer = recalled(ToolCall(call="1", tool=RECALL, arguments={"step": 9, "call": "1"}), None)

    assert answer.error is not None and "no result with that step and call" in answer.error.message
