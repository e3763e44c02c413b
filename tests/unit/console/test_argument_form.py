"""A form made of a tool's input schema: what it asks for, and the arguments that it sends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.console.pages.tools.argument_form import (
    FIELDS_MAX,
    Argument,
    WrongArguments,
    arguments_of,
    read_fields,
    read_raw,
)


def one(schema: Any, *, required: bool = False) -> Argument:
    found = arguments_of({"properties": {"a": schema}, "required": ["a"] if required else []})
    assert found is not None
    return found[0]


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "lines"),
        ({"type": "string", "maxLength": 40}, "text"),
        ({"type": "integer"}, "whole"),
        ({"type": ["number", "null"]}, "number"),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "flag"),
        ({"anyOf": [{"type": "boolean"}, {"type": "string"}]}, "json"),
        ({"enum": ["a", 1]}, "choice"),
        ({"type": "array"}, "json"),
        ({"$ref": "#/$defs/x"}, "json"),
        ({}, "json"),
        (True, "json"),
        ("nonsense", "json"),
        ({"type": 7, "enum": {}, "description": []}, "json"),
    ],
)
def test_a_property_is_asked_for_by_its_type(schema: Any, kind: str):
    assert one(schema).kind == kind


def test_needed_arguments_come_first():
    found = arguments_of({"properties": {"a": {}, "b": {}, "c": {}}, "required": ["c", "b", 5]})

    assert found is not None
    assert [argument.name for argument in found] == ["b", "c", "a"]


@pytest.mark.parametrize(
    "schema",
    [None, [], {}, {"properties": []}, {"properties": {str(n): {} for n in range(FIELDS_MAX + 1)}}],
    ids=["none", "list", "free", "wrong", "many"],
)
def test_a_schema_without_few_named_properties_makes_no_form(schema: Any):
    assert arguments_of(schema) is None


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, " 1 ", " 1 "),
        ({"type": "string"}, "a\r\nb", "a\nb"),
        ({"type": "integer"}, "12345678901234567890", 12345678901234567890),
        ({"type": "number"}, "0.1", 0.1),
        ({"type": "boolean"}, "false", False),
        ({"enum": ["a", 1]}, '"a"', "a"),
        ({"type": "array"}, "[1]", [1]),
    ],
)
def test_a_field_is_read_as_its_type(schema: Any, text: str, value: Any):
    argument = one(schema)

    assert read_fields((argument,), {argument.field: text}) == {"a": value}
    assert read_fields((argument,), {argument.field: ""}) == {}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer"}, "1.5"),
        ({"type": "integer"}, "true"),
        ({"type": "number"}, "NaN"),
        ({"type": "number"}, '"1"'),
        ({"type": "array"}, "[" * 100_000),
        ({"type": "array"}, "{"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(schema: Any, text: str):
    argument = one(schema)
    with pytest.raises(WrongArguments, match=r"^a: "):
        read_fields((argument,), {argument.field: text})


def test_raw_arguments_are_an_object():
    assert (read_raw(""), read_raw('{"a": 1}')) == ({}, {"a": 1})
    with pytest.raises(WrongArguments, match="no JSON object"):
        read_raw("[]")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(["type", "enum", "anyOf", "oneOf", "description", "maxLength", "default", "x"])


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.dictionaries(WORDS, JSON, max_size=5) | JSON, max_size=5), JSON)
def test_any_schema_makes_a_form_or_none(properties: dict[str, Any], required: Any):
    found = arguments_of({"properties": properties, "required": required})

    assert found is not None
    assert {argument.name for argument in found} == set(properties)
