"""An answer that is JSON by a schema: asked for, checked, and said strictly for providers that enforce it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import orjson

from wayline.llm import repair

PROBLEMS_MAX = 5
PROBLEM_MAX_CHARS = 300
VALIDATORS_MAX = 256
DEPTH_MAX = 100
TOO_DEEP = (RecursionError, orjson.JSONEncodeError)

_PLAIN = frozenset(
    """
    type title description properties required additionalProperties items enum const anyOf $ref $defs definitions
    default examples $schema $id format pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
    minItems maxItems minLength maxLength
    """.split()
)
"""What strict providers let a schema say."""


def instruction(schema: dict[str, Any]) -> str:
    """What a model is told whose provider takes no schema: the same text for the same schema."""
    said = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS).decode()
    return f"The final answer is JSON and nothing else, without a code fence, valid by this JSON Schema:\n{said}"


def unwrapped(text: str) -> str:
    """The JSON of an answer: without a fence or words around it, where there is a whole value inside."""
    try:
        repair.strict(text)
    except ValueError:
        found = next(repair.objects(text), None)
        return text if found is None else orjson.dumps(found).decode()
    return text.strip()


def problem(schema: dict[str, Any], text: str) -> str | None:
    """What is wrong with an answer, field by field, in words for the model that wrote it; None: nothing."""
    try:
        value = repair.strict(text)
    except ValueError as error:
        return f"not JSON: {error}"
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        wrong = sorted(_validator(_text(schema)).iter_errors(value), key=lambda one: [str(p) for p in one.path])
    except SchemaError as error:
        return f"cannot be checked, the schema is wrong at {error.json_path}: {error.message[:PROBLEM_MAX_CHARS]}"
    except Unresolvable as error:
        return f"cannot be checked: the schema refers to {error.ref!r}, which is not in it"
    except TOO_DEEP:
        return "cannot be checked: nested too deep"
    return "; ".join(_explained(error) for error in wrong[:PROBLEMS_MAX]) or None


def schema_problem(schema: dict[str, Any]) -> str | None:
    """Why no answer could ever be checked against a schema, or None."""
    from jsonschema.exceptions import SchemaError

    try:
        _validator(_text(schema))
    except SchemaError as error:
        return f"{error.json_path}: {error.message[:PROBLEM_MAX_CHARS]}"
    except TOO_DEEP:
        return "it is nested too deep"
    return None


def strict(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The same schema as strict providers want it: closed objects, every property required.

    None where that would mean something else: an optional property, an open object, a word they do not know.
    """
    if schema.get("type") != "object":
        return None
    try:
        return _strict(schema, 0)
    except _TooFree:
        return None


class _TooFree(Exception):
    """A schema allows what a strict one cannot."""


def _strict(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or not _PLAIN.issuperset(schema) or depth > DEPTH_MAX:
        raise _TooFree
    said = dict(schema)
    if "properties" in schema or schema.get("type") == "object":
        properties = schema.get("properties") or {}
        if schema.get("additionalProperties") not in (None, False) or set(schema.get("required") or ()) != set(
            properties
        ):
            raise _TooFree
        said |= {"properties": _each(properties, depth), "additionalProperties": False, "required": list(properties)}
    elif not said.keys() & {"type", "enum", "const", "anyOf", "$ref"}:
        raise _TooFree
    for key in ("$defs", "definitions"):
        if key in said:
            said[key] = _each(said[key], depth)
    if "items" in said:
        said["items"] = _strict(said["items"], depth + 1)
    if "anyOf" in said:
        said["anyOf"] = [_strict(one, depth + 1) for one in said["anyOf"]]
    return said


def _each(schemas: dict[str, Any], depth: int) -> dict[str, Any]:
    return {name: _strict(one, depth + 1) for name, one in schemas.items()}


def _text(schema: dict[str, Any]) -> bytes:
    return orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)


@lru_cache(maxsize=VALIDATORS_MAX)
def _validator(schema: bytes) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    said = orjson.loads(schema)
    kind = validator_for(said, default=Draft202012Validator)
    kind.check_schema(said)
    # An empty registry of our own: the library's default would fetch a `$ref` that an agent's author names.
    return kind(said, registry=EMPTY_REGISTRY)


def _explained(error: Any) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    said = error.message if len(error.message) <= PROBLEM_MAX_CHARS else f"{error.message[:PROBLEM_MAX_CHARS]}…"
    return f"{where}: {said}" if where else said
