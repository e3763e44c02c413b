"""Tools as functions of Python."""

from __future__ import annotations

import ast
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.tools import ToolDefinition
from wayline.sandbox import make_stubs
from wayline.sandbox.annotations import annotation
from wayline.sandbox.stubs import python_names


def tool(name: str, description: str = "", **properties: Any) -> ToolDefinition:
    needed = [one for one, schema in properties.items() if not schema.pop("optional", False)]
    schema = {"type": "object", "properties": properties, "required": needed}
    return ToolDefinition(name=name, description=description, input_schema=schema)


def test_a_tool_becomes_an_async_function_with_keyword_only_arguments():
    stubs = make_stubs(
        [
            tool(
                "search",
                "Find  passages.",
                query={"type": "string", "description": "What to find"},
                limit={"type": "integer", "default": 10, "optional": True},
            )
        ]
    )

    assert stubs.text.splitlines()[3:] == [
        "async def search(*, query: str, limit: int = 10) -> Any:",
        r'    "Find passages.\n    query: What to find\n    limit:"',
        "    ...",
    ]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "str"),
        ({"type": "number"}, "float"),
        ({"type": ["string", "null"]}, "Optional[str]"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}, "Optional[int | str]"),
        ({"enum": ["a", "b", 3, None]}, "Literal['a', 'b', 3, None]"),
        ({"const": "it's"}, """Literal["it's"]"""),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, "list[list[int]]"),
        ({"type": "array", "items": {"type": "number"}}, "list[Any]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "list[str]"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"$ref": "#/$defs/Level"}, "Literal['low', 'high']"),
        ({"$ref": "#/$defs/Endless"}, "Any"),
        ({"$ref": "https://elsewhere.example/schema"}, "Any"),
        ({"allOf": [{"$ref": "#/$defs/Level"}]}, "Literal['low', 'high']"),
        ({"type": "unheard-of"}, "Any"),
        (True, "Any"),
        ({}, "Any"),
    ],
)
def test_a_schema_becomes_an_annotation(schema: Any, expected: str):
    root = {"$defs": {"Level": {"enum": ["low", "high"]}, "Endless": {"$ref": "#/$defs/Endless"}}}

    assert annotation(schema, root) == expected


@pytest.mark.parametrize(
    "part",
    [
        {"anyOf": [{"$ref": "#/$defs/a"}] * 100},
        {"type": "object", "properties": {f"p{n}": {"$ref": "#/$defs/a"} for n in range(100)}},
    ],
)
def test_a_schema_that_refers_to_itself_everywhere_ends(part: dict[str, Any]):
    schema = {"$defs": {"a": part}, "type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}}

    assert len(make_stubs([ToolDefinition(name="find", input_schema=schema)]).text) < 100_000


def test_thousands_of_names_that_become_one_are_numbered_on():
    names = ["".join(signs) for signs in product(".-", repeat=13)]

    found = python_names(names, taken=frozenset())

    assert len(set(found)) == len(names)
    assert found[-1] == f"{'_' * 13}_{len(names)}"


def test_names_become_legal_and_unique_and_find_their_tool():
    names = ["crm-find", "crm_find", "crm find", "class", "print", "json", "2nd", "größe", ""]
    functions = make_stubs([tool(name) for name in names]).functions

    assert sorted(function.tool for function in functions.values()) == sorted(names)
    assert {name: function.tool for name, function in functions.items()} == {
        "_": "",
        "_2nd": "2nd",
        "class_": "class",
        "crm_find": "crm_find",
        "crm_find_2": "crm find",
        "crm_find_3": "crm-find",
        "gr__e": "größe",
        "json_": "json",
        "print_": "print",
    }


def test_arguments_get_their_own_names_back():
    (function,) = make_stubs([tool("t", **{"from": {}, "max-age": {}, "max_age": {}})]).functions.values()

    assert function.arguments({"from_": 1, "max_age_2": 2, "max_age": 3}) == {"from": 1, "max-age": 2, "max_age": 3}


def test_the_fields_of_a_nested_object_are_in_the_docstring():
    filters = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"field": {"type": "string"}, "above": {"type": "number"}},
            "required": ["field"],
        },
    }

    assert "filters: [{field: str, above?: float}, ...]" in make_stubs([tool("t", filters=filters)]).text


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_SCHEMAS = st.dictionaries(
    st.sampled_from(["type", "properties", "required", "items", "enum", "anyOf", "$ref", "additionalProperties"]),
    _JSON,
    max_size=4,
)


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=30), _SCHEMAS), max_size=4))
def test_any_definition_gives_readable_python(definitions: list[tuple[str, str, dict[str, Any]]]):
    tools = [ToolDefinition(name=n, description=d, input_schema=s) for n, d, s in definitions]
    stubs = make_stubs(tools)

    functions = [node.name for node in ast.parse(stubs.text).body if isinstance(node, ast.AsyncFunctionDef)]

    assert functions == list(stubs.functions)
    assert len(functions) == len(tools)
