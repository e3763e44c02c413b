"""A value that satisfies a JSON Schema, always the same one. `pattern` is not understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEPTH_MAX = 12
FORMATS = {
    "date": "2026-11-21",
    "date-time": "2026-11-21T00:00:00Z",
    "time": "00:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "hostname": "example.com",
}


def value(
    schema: Mapping[str, Any], filler: str = "text", root: Mapping[str, Any] | None = None, depth: int = 0
) -> Any:
    """Make a value of a schema; free strings are filled with `filler`."""
    root = schema if root is None else root
    if "$ref" in schema:
        return value(_at(root, schema["$ref"]), filler, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for name in ("anyOf", "oneOf"):
        if schema.get(name):
            # Deep down a recursive schema takes its way out, which is mostly the last: null.
            return value(schema[name][-1 if depth > DEPTH_MAX else 0], filler, root, depth + 1)
    if schema.get("allOf"):
        merged = {key: part for key, part in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            merged = _merged(merged, _at(root, part["$ref"]) if "$ref" in part else part)
        return value(merged, filler, root, depth + 1)
    return _of_kind(_kind(schema), schema, filler, root, depth)


def _of_kind(kind: str, schema: Mapping[str, Any], filler: str, root: Mapping[str, Any], depth: int) -> Any:
    if kind == "object":
        fields = schema.get("properties") or {}
        wanted = fields if depth <= DEPTH_MAX else schema.get("required", ())
        return {name: value(fields.get(name, {}), filler, root, depth + 1) for name in wanted}
    if kind == "array":
        least = schema.get("minItems", 1 if schema.get("items") and depth <= DEPTH_MAX else 0)
        return [value(schema.get("items") or {}, filler, root, depth + 1) for _ in range(least)]
    if kind == "string":
        text = FORMATS.get(schema.get("format", ""), filler)
        return text[: schema.get("maxLength", len(text))].ljust(schema.get("minLength", 0), ".")
    if kind in ("integer", "number"):
        return _number(schema)
    return {"boolean": True, "null": None}.get(kind)


def _number(schema: Mapping[str, Any]) -> int | float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    step = schema.get("multipleOf", 1)
    tried: list[float] = [1]
    tried += [low, low + 1] if low is not None else []
    tried += [high, high - 1] if high is not None else []
    tried += [(low + high) / 2] if low is not None and high is not None else []
    tried += [-(-one // step) * step for one in tried]
    return next((one for one in tried if _fits(one, schema)), 1)


def _fits(number: float, schema: Mapping[str, Any]) -> bool:
    return (
        number >= schema.get("minimum", number)
        and number <= schema.get("maximum", number)
        and number > schema.get("exclusiveMinimum", number - 1)
        and number < schema.get("exclusiveMaximum", number + 1)
        and number % schema.get("multipleOf", number or 1) == 0
        and (schema.get("type") != "integer" or number == int(number))
    )


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind:
        return str(kind)
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _merged(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    both = {**one, **two}
    if "properties" in one and "properties" in two:
        both["properties"] = {**one["properties"], **two["properties"]}
    return both


def _at(root: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    """Resolve a local reference (`#/$defs/Name`)."""
    found: Any = root
    for name in reference.removeprefix("#/").split("/") if reference != "#" else ():
        found = found[name.replace("~1", "/").replace("~0", "~")]
    return found
