"""What the simulator says without a script follows from the request alone."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from wayline.simulator import Asked, Call, Offered, Say, Turn, by_rules, rounds, turns
from wayline.simulator.request import texts
from wayline.simulator.scripts.values import value

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}, "k": {"type": "integer", "minimum": 3}}}


def asked(text: str = "What is JetStream?", *more: Turn, tools: tuple[str, ...] = (), **rest: Any) -> Asked:
    offered = tuple(Offered(name, "", SCHEMA) for name in tools)
    return Asked(1, "", "openai", "gpt-6-sol", {}, turns=(Turn("user", text), *more), tools=offered, **rest)


def test_a_tool_that_is_named_is_called_and_two_at_once():
    reply = by_rules(asked("Use send_mail and then find docs.", tools=("search", "send_mail", "find_docs")))

    assert [name for name, _ in reply.tools] == ["send_mail", "find_docs"]


def test_the_last_named_tool_is_called_though_a_date_follows():
    parts = [{"text": "Write it down with send_mail"}, {"text": "Sent on 2026-11-23, a Monday, at 01:30 UTC."}]

    request = asked(texts(parts), tools=("search", "send_mail"))

    assert request.text == "Write it down with send_mail"
    assert [name for name, _ in by_rules(request).tools] == ["send_mail"]


@pytest.mark.parametrize("others", [("send_mail", "find_docs"), ("recall_details", "find_docs")])
def test_without_a_named_tool_the_search_tool_gets_the_question(others: tuple[str, ...]):
    reply = by_rules(asked(tools=(*others, "knowledge_search")))

    assert reply.tools == (("knowledge_search", {"query": "What is JetStream?", "k": 3}),)


def test_optional_arguments_are_left_out():
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "only_in": {"type": "string"}}, "required": ["query"]}
    request = Asked(1, "", "openai", "m", {}, turns=(Turn("user", "Why?"),), tools=(Offered("search", "", schema),))

    assert by_rules(request).tools == (("search", {"query": "Why?"}),)


def test_a_tool_that_neither_searches_nor_is_named_is_left_alone():
    assert by_rules(asked(tools=("send_mail",))).text == "You asked: What is JetStream?"


@pytest.mark.parametrize(
    ("text", "name"),
    [("Draft a reply.", "drafting"), ("I object to it.", "objections"), ("What is JetStream?", "none")],
)
def test_the_listed_name_that_the_text_hints_at_is_answered(text: str, name: str):
    system = "The types:\n- drafting\n- objections\n- none\n\nAnswer with one."

    assert by_rules(asked(text, system=system)).text == name


def test_results_are_answered_from():
    called = Turn("assistant", calls=(Call("1", "search", {}), Call("2", "search", {})))
    found = (Turn("tool", "[1] a.md\nIt is a log. And more.", call_id="1"), Turn("tool", "It is fast.", call_id="2"))

    reply = by_rules(asked("What is JetStream?", called, *found, tools=("search",)))

    assert reply == Say(text="From 2 results: It is a log. It is fast.")


def test_a_new_question_is_looked_up_again():
    called = Turn("assistant", calls=(Call("1", "search", {}),))
    before = (called, Turn("tool", "It is a log.", call_id="1"), Turn("assistant", "A log."), Turn("user", "And KV?"))

    assert by_rules(asked("What is JetStream?", *before, tools=("search",))).tools


def test_a_platforms_user_turn_is_no_new_question():
    called = Turn("assistant", calls=(Call("1", "search", {}),))
    more = (called, Turn("tool", "It is a log.", call_id="1"), Turn("user", "[CONTEXT UPDATE]\nIt is Sunday."))

    assert by_rules(asked("What is JetStream?", *more, tools=("search",))).text == "From 1 results: It is a log."


def test_a_schema_is_satisfied_once_nothing_is_left_to_look_up():
    first = by_rules(asked(tools=("search",), schema=SCHEMA))
    called = (Turn("assistant", calls=(Call("1", "search", {}),)), Turn("tool", "x", call_id="1"))
    then = by_rules(asked("q", *called, tools=("search",), schema=SCHEMA))

    assert first.tools and first.value is None
    assert then.value == {"query": "q", "k": 3}


def test_thinking_is_sent_only_where_asked_for():
    assert by_rules(asked(thinks=True)).thinking
    assert not by_rules(asked()).thinking


def test_turns_count_answers_and_rounds_count_calls():
    says = (Say(text="one"), Say(text="two"))
    injected = asked("q", Turn("assistant", "Noted."), Turn("user", "go on"))
    called = asked("q", Turn("assistant", calls=(Call("1", "search", {}),)), Turn("tool", "x", call_id="1"))

    assert [script(injected).text for script in (turns(*says), rounds(*says))] == ["two", "one"]
    assert [script(called).text for script in (turns(*says), rounds(*says))] == ["two", "two"]


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "minItems": 2},
        {"type": ["null", "string"], "minLength": 9, "maxLength": 12},
        {"enum": ["b", "a"]},
        {"const": 7},
        {"type": "integer", "minimum": 5, "multipleOf": 4},
        {"type": "integer", "maximum": -3},
        {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        {"allOf": [{"$ref": "#/$defs/a"}, {"required": ["y"], "properties": {"y": {"type": "integer"}}}]}
        | {
            "$defs": {
                "a": {"type": "object", "required": ["x"], "properties": {"x": {"format": "date", "type": "string"}}}
            }
        },
        {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "n": {"type": "integer"}},
            "required": ["next", "n"],
            "additionalProperties": False,
        },
    ],
)
def test_values_satisfy_their_schema(schema):
    Draft202012Validator(schema).validate(value(schema))
