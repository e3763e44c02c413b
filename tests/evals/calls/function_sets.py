"""Functions that others described, as MCP servers would offer them: public sets, and tools in recorded requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wayline.contracts.server_config import ServerSettings
from wayline.contracts.tools import ToolDefinition
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.tool_catalogue import admit_all

from .. import recordings, shared

SETS = ("simple_python", "multiple", "parallel", "parallel_multiple")
"""Those with the calls that are right."""
TYPES = {"dict": "object", "tuple": "array", "float": "number", "any": None}
"""What the set's own words for types are in JSON Schema."""
OMITTED = ""
"""Stands among the allowed values of a parameter that may be left out."""
SERVER = ServerSettings(name="bfcl", url="http://127.0.0.1/mcp")

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Offered:
    """A function as a server lists it."""

    name: str
    description: str | None
    input_schema: dict[str, Any]
    annotations: None = None
    title: None = None
    output_schema: None = None
    meta: None = None


@dataclass(frozen=True)
class Case:
    """Tools, and the calls of them that a model should make."""

    id: str
    tools: tuple[ToolDefinition, ...]
    calls: tuple[Call, ...] = ()


def cases() -> list[Case]:
    """Return every case of the public set."""
    return [*_with_calls(), *_without_calls()]


def recorded() -> list[Case]:
    """Return the tools of each recorded request that has any."""
    found = []
    for family in ("anthropic", "openai-chat", "openai-responses"):
        for one in recordings.recordings(family):
            offered = list(_of_request(one.request))
            if offered:
                tools = _admitted(offered)
                found.append(Case(one.name, tools, tuple((tool.name, sample(tool.input_schema)) for tool in tools)))
    return found


def sample(schema: Any, of: Any = None) -> Any:
    """Return a value that a schema allows, with every property that it names; `of` is the whole schema."""
    of = schema if of is None else of
    if "$ref" in schema:
        return sample(of["$defs"][schema["$ref"].rpartition("/")[2]], of)
    if "const" in schema or schema.get("enum"):
        return schema.get("const", (schema.get("enum") or [None])[0])
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            return sample(schema[choice][0], of)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return {name: sample(one, of) for name, one in schema.get("properties", {}).items()}
        case "array":
            return [sample(schema.get("items") or {}, of)] * max(1, schema.get("minItems", 1))
        case "integer":
            return schema.get("minimum", 7)
        case "number":
            return schema.get("minimum", 0.5)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            # Quotes, a line end and letters beyond ASCII: what is lost first where text is encoded twice.
            return 'a "quoted" word,\nand \u6f22\u5b57'


def _with_calls() -> Iterator[Case]:
    for name in SETS:
        answers = {row["id"]: row["ground_truth"] for row in shared.rows("calls-bfcl-dev", f"{name}.answers.jsonl.gz")}
        for row in shared.rows("calls-bfcl-dev", f"{name}.jsonl.gz"):
            offered = [_offered(one) for one in row["function"]]
            tools = _admitted(offered)
            names = dict(zip((one.name for one in offered), (tool.name for tool in tools), strict=True))
            calls = [
                (names[function], _chosen(allowed)) for one in answers[row["id"]] for function, allowed in one.items()
            ]
            yield Case(row["id"], tools, tuple(calls))


def _without_calls() -> Iterator[Case]:
    for row in shared.rows("calls-bfcl-dev", "irrelevance.jsonl.gz"):
        yield Case(row["id"], _admitted([_offered(one) for one in row["function"]]))
    for file in sorted(shared.needed("calls-bfcl-dev", "func_doc").iterdir()):
        rows = shared.rows("calls-bfcl-dev", "func_doc", file.name)
        yield Case(file.name, _admitted([_offered(one) for one in rows]))


def _offered(function: dict[str, Any]) -> Offered:
    return Offered(function["name"], function["description"], _json_schema(function["parameters"]))


def _json_schema(schema: Any) -> Any:
    """Return a schema of the set in the words of JSON Schema."""
    if isinstance(schema, list):
        return [_json_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _json_schema(value) for key, value in schema.items()}
    kind = found.get("type")
    if isinstance(kind, str) and kind in TYPES:
        found["type"] = TYPES[kind]
        if found["type"] is None:
            del found["type"]
    return found


def _chosen(allowed: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the first allowed value of each parameter that must be given."""
    given = {name: values for name, values in allowed.items() if OMITTED not in values}
    return {name: _value(values[0]) for name, values in given.items()}


def _value(value: Any) -> Any:
    """Return a value; objects list what is allowed of each of their own."""
    if isinstance(value, dict):
        return _chosen({name: each if isinstance(each, list) else [each] for name, each in value.items()})
    return [_value(each) for each in value] if isinstance(value, list) else value


def _of_request(request: Any) -> Iterator[Offered]:
    for tool in request.get("tools") or () if isinstance(request, dict) else ():
        function = tool.get("function", tool)
        schema = function.get("input_schema") or function.get("parameters")
        if function.get("name") and isinstance(schema, dict):
            yield Offered(function["name"], function.get("description"), schema)


def _admitted(offered: list[Offered]) -> tuple[ToolDefinition, ...]:
    """Return the tools as the registry takes them in."""
    tools = admit_all(offered, SERVER, Arguments(), retry_after_s=(), prefix=False).tools
    assert len(tools) == len({one.name for one in offered}), "the registry left a tool out"
    return tuple(tool.definition for tool in tools.values())
