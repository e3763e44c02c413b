"""Any tool that a server may list, as every provider takes it, or left out with a reason."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from wayline.contracts.models import ModelCard
from wayline.contracts.server_config import ServerSettings
from wayline.contracts.tools import ToolDefinition
from wayline.llm.anthropic.request import build_body as to_messages
from wayline.llm.model import ModelRequest
from wayline.llm.openai.request import build_body as to_responses
from wayline.llm.openai_chat.request import build_body as to_chat
from wayline.schemas import compile_pattern, compile_schema
from wayline.tool_registry.connection.offered_tools import read_tool
from wayline.tool_registry.definitions import fit_schema as fitting
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.fit_schema import fit_schema, own_arguments
from wayline.tool_registry.definitions.tool_catalogue import admit_all

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
SERVER = ServerSettings(name="crm", url="http://crm.example/mcp")
WIRES = ((to_messages, "anthropic"), (to_responses, "openai"), (to_chat, "chat"))
NOT_AT_THE_TOP = {"oneOf", "anyOf", "allOf", "not", "enum"}
KEYWORDS = (
    "type properties required items additionalProperties anyOf oneOf allOf not enum const pattern format"
    " description title minimum exclusiveMinimum $ref $defs definitions $schema $id dependencies patternProperties"
    " propertyNames default examples prefixItems additionalItems minLength deprecated"
).split()
SCALARS = st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats() | st.text(max_size=6)
NAMES = st.sampled_from(["a", "a b", "город", "城市", "x" * 80, "$top", "", "ok_1"]) | st.text(max_size=4)
WORDS = st.sampled_from(
    [
        "object",
        "string",
        "integer",
        ["string", "null"],
        "any",
        "^(a+)+$",
        "[",
        "#/$defs/a",
        "#/properties/a b",
        "#",
        "a",
    ]
)
VALUES = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS) | NAMES, inner, max_size=4),
    max_leaves=12,
)
SCHEMAS = st.fixed_dictionaries(
    {}, optional={"type": st.just("object"), "properties": st.dictionaries(NAMES, VALUES, max_size=3), "$defs": VALUES}
)
TOOLS = st.fixed_dictionaries(
    {"name": NAMES | SCALARS},
    optional={
        "inputSchema": SCHEMAS | VALUES,
        "description": SCALARS,
        "annotations": VALUES,
        "outputSchema": VALUES,
        "_meta": VALUES,
        "title": SCALARS,
    },
)


def parameters(schema: Any) -> set[str]:
    """Return the names of the parameters at the top of a schema."""
    return set(schema.get("properties", {}))


def told(tool: ToolDefinition) -> dict[str, dict[str, Any]]:
    """Return a tool as each provider is told of it, by its wire."""
    found: dict[str, dict[str, Any]] = {}
    for build_body, provider in WIRES:
        card = ModelCard(provider=provider, model="m", tier="standard")
        asked = ModelRequest(
            card=card, messages=(), system="s", tools=(tool,), max_output_tokens=100, attempt_id="acme/j1/1/m1"
        )
        (one,) = build_body(asked)[0]["tools"]
        found[provider] = one.get("function", one)
    return found


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(TOOLS)
@example({"name": "a", "inputSchema": {"type": "object", "properties": [], "propertyNames": {}}})
def test_any_tool_is_offered_everywhere_or_left_out_with_reason(raw: dict[str, Any]):
    tool = read_tool(raw)
    if isinstance(tool, str):
        assert tool
        return
    admitted = admit_all([tool], SERVER, Arguments(), retry_after_s=())
    if admitted.left_out:
        assert all(admitted.left_out.values())
        return

    (one,) = admitted.tools.values()

    ToolDefinition.model_validate_json(one.definition.model_dump_json())
    for provider, said in told(one.definition).items():
        schema = said.get("parameters") or said["input_schema"]
        json.dumps(said, allow_nan=False).encode()
        Draft202012Validator.check_schema(schema)
        assert NAME.fullmatch(said["name"]), provider
        assert schema["type"] == "object"
        assert not schema.keys() & NOT_AT_THE_TOP
        assert all(PARAMETER.fullmatch(name) for name in parameters(schema))
        compile_schema(schema, lenient=True)


@given(st.dictionaries(NAMES, st.integers(), max_size=5))
def test_arguments_find_the_way_back_to_the_servers_names(arguments: dict[str, int]):
    own = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in arguments},
        "required": list(arguments),
    }
    fitted = fit_schema(own)
    by_own = {name: shown for shown, name in fitted.names.items()}
    given_ = {by_own.get(name, name): value for name, value in arguments.items()}

    assert compile_schema(fitted.schema).problems(given_) == []
    assert own_arguments(given_, fitted.names) == arguments
    assert own_arguments({"deep": [given_]}, fitted.names) == {"deep": [arguments]}


def test_an_older_draft_is_told_in_the_words_of_the_newest():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "pair": {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False},
            "n": {"minimum": 1, "exclusiveMinimum": True},
            "first": {"$ref": "#/properties/pair/items/0", "minLength": 5},
            "a b": {"type": "string", "description": 5},
            "same": {"$ref": "#/properties/a b"},
        },
        "required": ["a b"],
        "dependencies": {"n": ["a b"], "pair": {"required": ["n"]}},
    }

    fitted = fit_schema(schema)

    (shown,) = fitted.names
    assert fitted.schema == {
        "properties": {
            "pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
            "n": {"exclusiveMinimum": 1},
            "first": {"$ref": "#/properties/pair/prefixItems/0"},
            shown: {"type": "string", "title": "a b"},
            "same": {"$ref": f"#/properties/{shown}"},
        },
        "required": [shown],
        "dependentRequired": {"n": [shown]},
        "dependentSchemas": {"pair": {"required": ["n"]}},
    }
    assert compile_schema(fitted.schema).problems({shown: "x", "pair": ["a", 1], "n": 2}) == []


SLIPS: dict[str, tuple[Any, Any]] = {
    "null for nothing, as Go writes it": ({"properties": None, "required": None, "enum": None}, {}),
    "a list for an empty map, as PHP writes it": ({"properties": [], "$defs": []}, {"properties": {}, "$defs": {}}),
    "required at each property, as in the third draft": (
        {"properties": {"a": {"type": "string", "required": True}, "b": {"required": False}}, "required": ["b"]},
        {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["b", "a"]},
    ),
    "any type": (
        {"properties": {"a": {"type": "any"}, "b": {"type": ["any", "null"]}}},
        {"properties": {"a": {}, "b": {}}},
    ),
    "a language's own type": (
        {"properties": {"a": {"type": "STRING"}, "b": {"type": "int"}, "c": {"type": ["Float", "null"]}}},
        {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": ["number", "null"]}}},
    ),
    "nullable, as in OpenAPI": (
        {"properties": {"a": {"type": "string", "enum": ["x", None], "nullable": True}}},
        {"properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}}},
    ),
    "counts that are none": ({"minProperties": -1, "maxProperties": "9"}, {}),
    "null where it is a value": ({"properties": {"a": {"const": None}}}, {"properties": {"a": {"const": None}}}),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_common_slip_of_a_schema_leaves_no_tool_out(slip: str):
    written, meant = SLIPS[slip]
    fitted = fit_schema(written).schema

    assert fitted == meant
    assert compile_schema(fitted)


def test_a_schema_that_php_writes_empty_takes_no_arguments():
    tool = read_tool({"name": "a", "inputSchema": []})

    assert not isinstance(tool, str) and tool.input_schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize("names", [("查找", "删除"), ("поиск", "search"), ("größe", "gr__e")])
def test_names_in_another_script_stay_apart(names: tuple[str, str]):
    tools = [tool for name in names if not isinstance(tool := read_tool({"name": name}), str)]

    admitted = admit_all(tools, SERVER, Arguments(), retry_after_s=())

    assert admitted.left_out == {}
    assert {tool.offered_as for tool in admitted.tools.values()} == set(names)


def test_large_patterns_are_compiled_up_to_their_common_bound(monkeypatch: pytest.MonkeyPatch):
    compiled: list[str] = []
    monkeypatch.setattr(fitting, "compile_pattern", lambda source: compiled.append(source) or compile_pattern(source))
    schema = {"properties": {f"p{n}": {"pattern": rf"(\p{{L}}|\p{{N}}){{30}}|x{n}"} for n in range(50)}}

    assert fit_schema(schema).schema == schema
    assert len(compiled) < 10
