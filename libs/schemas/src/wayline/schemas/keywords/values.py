"""Keywords for values of every kind: `type`, `enum`, `const`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.schemas.keywords.parts import Make, Part, is_number
from wayline.schemas.limits import Budget
from wayline.schemas.nodes import Check, Evaluated, Run
from wayline.schemas.problems import shown


def _is_integer(value: Any) -> bool:
    return is_number(value) and (isinstance(value, int) or value.is_integer())


TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _type(part: Part) -> Check:
    names = [part.value] if isinstance(part.value, str) else part.value
    if not isinstance(names, list) or not names or not all(isinstance(one, str) and one in TYPES for one in names):
        raise part.wrong("a type of JSON")
    kinds = [TYPES[name] for name in names]
    named = ", ".join(map(repr, names))

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return any(kind(value) for kind in kinds) or run.fail(f"{shown(value)} is not of type {named}")

    return check


def canonical(value: Any, budget: Budget) -> Any:
    """Return what is equal for equal values of JSON alone, and can be put in a set: true is not 1, and 1.0 is."""
    budget.spend()
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return ("array", tuple([canonical(one, budget) for one in value]))
    if isinstance(value, dict):
        return ("object", frozenset([(name, canonical(one, budget)) for name, one in value.items()]))
    return value


def _enum(part: Part) -> Check:
    if not isinstance(part.value, list):
        raise part.wrong("a list of values")
    allowed = {canonical(one, Budget()) for one in part.value}
    nested = any(isinstance(one, list | dict) for one in part.value)
    named = shown(part.value)

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        possible = nested or not isinstance(value, list | dict)
        if possible and canonical(value, run.budget) in allowed:
            return True
        return run.fail(f"{shown(value)} is not one of {named}")

    return check


def _const(part: Part) -> Check:
    wanted = canonical(part.value, Budget())
    named = shown(part.value)
    nested = isinstance(part.value, list | dict)

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        possible = nested == isinstance(value, list | dict)
        return (possible and canonical(value, run.budget) == wanted) or run.fail(f"{named} was expected")

    return check


KEYWORDS: dict[str, Make] = {"type": _type, "enum": _enum, "const": _const}
