"""Keywords for values of every kind: `type`, `enum`, `const`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wayline.schemas.keywords.parts import Make, Part, is_number
from wayline.schemas.limits import Budget
from wayline.schemas.nodes import Check, Evaluated, Run
from wayline.schemas.problems import says, shown

CHARS_A_STEP = 1_000
"""Of a text that is compared with others."""


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
    other = says(f"is not of type {', '.join(map(repr, names))}")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return any(kind(value) for kind in kinds) or run.fail(other, value)

    return check


def canonical(value: Any, budget: Budget) -> str:
    """Return a text that is the same for equal values of JSON alone: true is not 1, and 1.0 is.

    A text, because nobody can write many of one hash: of numbers and lists of them anybody can, and a set of those
    takes time that grows with the square.
    """
    pieces: list[str] = []
    _write(value, pieces, budget)
    return " ".join(pieces)


def _write(value: Any, pieces: list[str], budget: Budget) -> None:
    if isinstance(value, str):
        budget.spend(1 + len(value) // CHARS_A_STEP)
        pieces.append(f"{len(value)}:{value}")
        return
    budget.spend()
    if isinstance(value, list):
        pieces.append("[")
        for one in value:
            _write(one, pieces, budget)
        pieces.append("]")
    elif isinstance(value, dict):
        pieces.append("{")
        for name in sorted(value):
            _write(name, pieces, budget)
            _write(value[name], pieces, budget)
        pieces.append("}")
    else:
        pieces.append(repr(int(value) if isinstance(value, float) and value.is_integer() else value))


def _enum(part: Part) -> Check:
    if not isinstance(part.value, list):
        raise part.wrong("a list of values")
    allowed = {canonical(one, Budget()) for one in part.value}
    nested = any(isinstance(one, list | dict) for one in part.value)
    other = says(f"is not one of {shown(part.value)}")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        possible = nested or not isinstance(value, list | dict)
        if possible and canonical(value, run.budget) in allowed:
            return True
        return run.fail(other, value)

    return check


def _const(part: Part) -> Check:
    wanted = canonical(part.value, Budget())
    expected = f"{shown(part.value)} was expected"
    nested = isinstance(part.value, list | dict)

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        possible = nested == isinstance(value, list | dict)
        return (possible and canonical(value, run.budget) == wanted) or run.fail(lambda _: expected, value)

    return check


KEYWORDS: dict[str, Make] = {"type": _type, "enum": _enum, "const": _const}
