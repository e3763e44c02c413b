"""An answer that is JSON by a schema: asked for in words, and checked."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import orjson

from wayline.llm.broken_json import repair
from wayline.llm.model import ModelRequest
from wayline.schemas import Budget, OverBudget, Schema, UnusableSchema, compile_schema

PROBLEMS_MAX = 5
SCHEMAS_KEPT_MAX = 256
STEPS_MAX = 50_000
"""Of one comparison: other jobs of the process wait for it."""


def instruction(schema: dict[str, Any]) -> str:
    """Return the text for a model whose provider accepts no schema. Answers follow the order of its fields."""
    encoded = orjson.dumps(schema).decode()
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


def value_problem(schema: dict[str, Any], value: Any, *, steps_max: int = STEPS_MAX) -> str | None:
    """Return what a schema says against a value, field by field; None if nothing.

    `schema` may be that of a stranger's tool: what of it cannot be checked in bounds is left to the tool's server.
    """
    try:
        found = _schema(_text(schema), lenient=True).problems(value, budget=Budget(steps_max))
    except UnusableSchema as error:
        return f"cannot be checked, the schema is wrong at {error}"
    except OverBudget as error:
        return f"cannot be checked: to compare it with the schema, {error}"
    except orjson.JSONEncodeError:
        return "cannot be checked: the schema is nested too deep"
    return "; ".join(found[:PROBLEMS_MAX]) or None


def problem(schema: dict[str, Any], text: str) -> str | None:
    """Return what is wrong with an answer, field by field, for the model that wrote it; None if nothing is."""
    try:
        value = repair.strict(text)
    except ValueError as error:
        return f"not JSON: {error}"
    return value_problem(schema, value)


def schema_problem(schema: dict[str, Any]) -> str | None:
    """Return why no answer can be checked against a schema; None if all of it can."""
    try:
        _schema(_text(schema), lenient=False)
    except UnusableSchema as error:
        return str(error)
    except orjson.JSONEncodeError:
        return "it is nested too deep"
    return None


def arguments_schema_problem(schema: dict[str, Any]) -> str | None:
    """Return why a tool's arguments cannot be checked against a schema, or are no object; None: they can."""
    if schema.get("type", "object") != "object":
        return "the arguments of a tool are an object"
    return schema_problem(schema)


def _text(schema: dict[str, Any]) -> bytes:
    return orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)


@lru_cache(maxsize=SCHEMAS_KEPT_MAX)
def _schema(text: bytes, *, lenient: bool) -> Schema:
    return compile_schema(orjson.loads(text), lenient=lenient)
