"""JSON Schemas in the dialects that providers accept."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

NOT_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "not", "enum")
NOT_ENFORCED = frozenset(
    {
        "not",
        "if",
        "then",
        "else",
        "patternProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
        "prefixItems",
        "contains",
    }
)
NOT_CHECKED = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    }
)
NAMED = frozenset({"properties", "$defs", "definitions"})
LISTED = frozenset({"anyOf", "allOf", "oneOf"})
_REWRITTEN = frozenset({*NOT_AT_THE_TOP, "$ref"})


def arguments(schema: Schema) -> Schema:
    """Return a tool's schema as every provider accepts it: an object, with no alternatives at the top.

    What is left out here the registry still checks, against the whole schema. Most schemas are so already: they are
    returned as they are.
    """
    if _is_plain_object(schema):
        return schema
    whole = _without_reference(schema)
    rest = {key: value for key, value in whole.items() if key not in NOT_AT_THE_TOP}
    properties: Schema = dict(rest.get("properties") or {})
    required = list(rest.get("required") or ())
    for keyword in sorted(LISTED & whole.keys()):
        parts = [_without_reference(one, within=schema) for one in whole[keyword] if isinstance(one, dict)]
        for part in parts:
            # Of what may be there one way or another, the first description counts.
            properties = {**(part.get("properties") or {}), **properties}
        needed = [set(part.get("required") or ()) for part in parts]
        common = set.union(*needed) if keyword == "allOf" and needed else set.intersection(*needed) if needed else set()
        required += sorted(common - set(required))
    named = {"required": [name for name in required if name in properties]} if required else {}
    return {**rest, "type": "object", "properties": properties, **named}


def _is_plain_object(schema: Schema) -> bool:
    """Return whether a schema is an object that requires only what it names, with nothing at its top to rewrite."""
    properties = schema.get("properties")
    return (
        schema.get("type") == "object"
        and isinstance(properties, dict)
        and _REWRITTEN.isdisjoint(schema)
        and all(name in properties for name in schema.get("required") or ())
    )


def _without_reference(schema: Schema, within: Schema | None = None) -> Schema:
    """Return a schema with what it refers to in its place, where that is a definition beside it."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith(("#/$defs/", "#/definitions/")):
        return schema
    keyword, _, name = reference.removeprefix("#/").partition("/")
    found = (schema if within is None else within).get(keyword, {}).get(name)
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    return {**found, **rest} if isinstance(found, dict) and "$ref" not in found else schema


def closed(schema: Schema) -> Schema | None:
    """Close every object of a schema, as strict providers require; return None where that would change its meaning.

    Bounds on numbers, lengths and counts are left to our own validation of the answer.
    """
    try:
        return _closed(schema)
    except _Open:
        return None


def strict(schema: Schema) -> Schema | None:
    """Return the schema as the strictest providers enforce it: an object, closed and complete; None if it is not."""
    found = closed(schema) if schema.get("type") == "object" else None
    return found if found is not None and complete(found) else None


def complete(schema: Any) -> bool:
    """Return whether every property of every object is required, as the strictest providers demand."""
    if isinstance(schema, list):
        return all(complete(each) for each in schema)
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if isinstance(properties, dict) and set(properties) != set(schema.get("required") or ()):
        return False
    return not schema.keys() & {"oneOf", "allOf"} and all(complete(value) for value in schema.values())


class _Open(Exception):
    """An object that may hold more than its schema names."""


def _closed(schema: Schema) -> Schema:
    found: Schema = {}
    for key, value in schema.items():
        if key in NOT_ENFORCED:
            raise _Open
        if key in NOT_CHECKED:
            continue
        if key in NAMED and isinstance(value, dict):
            found[key] = {name: _either(each) for name, each in value.items()}
        elif key in LISTED and isinstance(value, list):
            found[key] = [_either(each) for each in value]
        elif key == "items":
            found[key] = _either(value)
        else:
            found[key] = value
    if schema.get("type") == "object" or "properties" in schema:
        if not schema.get("properties") or schema.get("additionalProperties") not in (None, False):
            raise _Open
        found["additionalProperties"] = False
    return found


def _either(schema: Any) -> Any:
    if isinstance(schema, dict) and schema:
        return _closed(schema)
    raise _Open
