"""JSON Schemas as strict providers want them."""

from copy import deepcopy

import pytest

from wayline.llm.schemas import arguments, closed, complete, strict

CITY = {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}, "required": ["name"]}


def test_every_object_is_closed_and_bounds_are_left_to_us():
    schema = {
        "type": "object",
        "properties": {"cities": {"type": "array", "minItems": 2, "items": CITY}, "near": {"$ref": "#/$defs/city"}},
        "required": ["cities", "near"],
        "$defs": {"city": CITY},
    }
    shut = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }

    assert closed(schema) == {
        "type": "object",
        "properties": {"cities": {"type": "array", "items": shut}, "near": {"$ref": "#/$defs/city"}},
        "required": ["cities", "near"],
        "$defs": {"city": shut},
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {**CITY, "additionalProperties": True},
        {**CITY, "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "array", "items": {"type": "object"}},
        {"anyOf": [{"type": "string"}, {"type": "object"}]},
        {**CITY, "if": {}},
    ],
)
def test_a_schema_that_allows_more_than_it_names_is_not_closed(schema):
    assert closed(schema) is None


def test_a_property_may_be_called_like_a_keyword():
    schema = {"type": "object", "properties": {"minimum": {"type": "integer"}, "not": {"type": "string"}}}

    assert closed(schema) == {**schema, "additionalProperties": False}


def test_an_optional_property_makes_a_schema_incomplete_wherever_it_is():
    optional = {"type": "object", "properties": {"a": {"type": "string"}}}

    assert complete(CITY)
    assert not complete(optional)
    assert not complete({"type": "array", "items": optional})


def test_a_tools_schema_is_an_object_without_alternatives_at_the_top():
    assert arguments({}) == {"type": "object", "properties": {}}
    assert arguments({**CITY, "anyOf": [{"required": ["name"]}], "additionalProperties": False}) == {
        **CITY,
        "additionalProperties": False,
    }


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}
SHUT = {
    **PERSON,
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "additionalProperties": False,
}


def test_a_strict_schema_is_closed_all_the_way_down():
    schema = {
        "type": "object",
        "properties": {
            "people": {"type": "array", "items": {"$ref": "#/$defs/person"}},
            "boss": {"anyOf": [{"$ref": "#/$defs/person"}, {"type": "null"}]},
        },
        "required": ["people", "boss"],
        "$defs": {"person": PERSON},
    }
    before = deepcopy(schema)

    assert strict(schema) == {**schema, "additionalProperties": False, "$defs": {"person": SHUT}}
    assert schema == before


@pytest.mark.parametrize(
    "loose",
    [
        {"type": "array", "items": {"type": "string"}},
        {"anyOf": [PERSON]},
        {**PERSON, "required": ["name"]},
        {**PERSON, "additionalProperties": True},
        {**PERSON, "patternProperties": {}},
        {**PERSON, "allOf": [PERSON]},
        {**PERSON, "properties": {"name": {"type": "string"}, "age": {}}},
        {**PERSON, "properties": {"name": True, "age": {"type": "integer"}}},
    ],
)
def test_a_schema_that_strictness_would_change_stays_loose(loose):
    assert strict(loose) is None


def test_what_stands_in_alternatives_at_the_top_is_still_told():
    by_id = {"properties": {"id": {"type": "integer"}, "deep": {"type": "boolean"}}, "required": ["id", "deep"]}
    by_name = {"properties": {"name": {"type": "string"}}, "required": ["name", "deep"]}

    told = arguments({"oneOf": [by_id, {"$ref": "#/$defs/by_name"}], "$defs": {"by_name": by_name}})

    assert told["properties"] == {**by_id["properties"], **by_name["properties"]}
    assert told["required"] == ["deep"]
    assert arguments({"allOf": [by_id, by_name]})["required"] == ["deep", "id", "name"]


def test_a_schema_that_only_refers_to_a_definition_is_told_whole():
    assert arguments({"$ref": "#/definitions/city", "definitions": {"city": CITY}})["required"] == ["name"]
