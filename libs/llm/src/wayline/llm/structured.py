"""An answer that is JSON by a schema: asked for in words, and checked."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import orjson

from wayline.llm.broken_json import repair
from wayline.llm.model import ModelRequest

PROBLEMS_MAX = 5
PROBLEM_MAX_CHARS = 300
VALIDATORS_MAX = 256
TOO_DEEP = (RecursionError, orjson.JSONEncodeError)


def instruction(schema: dict[str, Any]) -> str:
    """Return the text for a model whose provider accepts no schema: the same for the same schema."""
    encoded = orjson.dumps(schema, option=orjson.OPT_SORT_KEYS).decode()
    return f"The final answer is JSON and nothing else, without a code fence, valid by this JSON Schema:\n{encoded}"


def with_instruction(request: ModelRequest) -> ModelRequest:
    """Return the request with the schema in its system prompt, for a provider that enforces none."""
    assert request.output_schema is not None
    return replace(request, system=f"{request.system}\n\n{instruction(request.output_schema)}".lstrip())


def unwrapped(text: str) -> str:
    """Return the JSON of an answer without a fence or words around it, where there is a whole value inside."""
    try:
        repair.strict(text)
    except ValueError:
        found = next(repair.objects(text), None)
        return text if found is None else orjson.dumps(found).decode()
    return text.strip()


def value_problem(schema: dict[str, Any], value: Any) -> str | None:
    """Return what a schema says against a value, field by field; None if nothing."""
    return problem(schema, orjson.dumps(value).decode())


def problem(schema: dict[str, Any], text: str) -> str | None:
    """Return what is wrong with an answer, field by field, for the model that wrote it; None if nothing is."""
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
    """Return why no answer can be checked against a schema; None if it can."""
    from jsonschema.exceptions import SchemaError

    try:
        _validator(_text(schema))
    except SchemaError as error:
        return f"{error.json_path}: {error.message[:PROBLEM_MAX_CHARS]}"
    except TOO_DEEP:
        return "it is nested too deep"
    return None


def _text(schema: dict[str, Any]) -> bytes:
    return orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)


@lru_cache(maxsize=VALIDATORS_MAX)
def _validator(schema: bytes) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    parsed = orjson.loads(schema)
    kind = validator_for(parsed, default=Draft202012Validator)
    kind.check_schema(parsed)
    # An empty registry of our own: the library's default would fetch a `$ref` that an agent's author names.
    return kind(parsed, registry=EMPTY_REGISTRY)


def _explained(error: Any) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    message = error.message if len(error.message) <= PROBLEM_MAX_CHARS else f"{error.message[:PROBLEM_MAX_CHARS]}…"
    return f"{where}: {message}" if where else message
