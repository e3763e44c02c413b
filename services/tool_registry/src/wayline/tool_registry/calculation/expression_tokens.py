"""Split an expression into its numbers, names and signs, and refuse what has two readings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wayline.tool_registry.calculation.exact_numbers import CannotCompute

NO_COMMAS = "write thousands without commas, and a space after each comma between arguments"
TWO_READINGS = "'%' has two readings here: write 'x mod (y)' for the remainder, 'x% of y' or '(x%) + y' for per cent"
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d{1,4})?)"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|//|[-+*/%^!(),\u00d7\u00f7\u00b7\u2212]))"
)
_SAME = {"\u00d7": "*", "\u00b7": "*", "\u00f7": "/", "\u2212": "-", "^": "**"}
"""Signs as they are printed, and how they are typed."""
_FIRST_GROUP, _GROUP = re.compile(r"\d{1,3}"), re.compile(r"\d{3}(\.\d*)?")
"""Of a number whose thousands are set apart."""


@dataclass(frozen=True, slots=True)
class Token:
    """A number, a name or a sign, and where it stands."""

    kind: str
    text: str
    begin: int
    end: int


END = Token("end", "", 0, 0)


def tokens(expression: str) -> list[Token]:
    """Return the numbers, names and signs of an expression. Raises CannotCompute."""
    found = list(_split(expression))
    for first, comma, second in zip(found, found[1:], found[2:], strict=False):
        joined = comma.text == "," and first.end == comma.begin and comma.end == second.begin
        if joined and _FIRST_GROUP.fullmatch(first.text) and _GROUP.fullmatch(second.text):
            raise CannotCompute(f"'{first.text},{second.text}' is one number or two: {NO_COMMAS}")
    return found


def _split(expression: str) -> Iterator[Token]:
    at, text = 0, expression.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            rest = text[at:].lstrip()
            raise CannotCompute(
                f"{rest[:20]!r} is no part of an expression: numbers, + - * / // % ^ ! ( ) and functions"
            )
        kind = str(found.lastgroup)
        yield Token(kind, _SAME.get(found[kind], found[kind]), found.start(kind), found.end())
        at = found.end()


def is_per_cent(found: Sequence[Token], place: int) -> bool:
    """Return whether the `%` at a place is per cent; else it is the remainder. Raises CannotCompute."""
    sign, following, operand, then = [*found[place : place + 4], END, END, END][:4]
    left_apart, right_apart = found[place - 1].end < sign.begin, sign.end < following.begin
    if following.text in ("+", "-"):
        # `15% + 20` and `5%+3%`; but not `10 % -3`.
        sum_apart = not left_apart and following.end < operand.begin
        if sum_apart or (operand.kind == "number" and then.text == "%"):
            return True
    elif following.text == "(":
        if left_apart and right_apart:
            return False
    elif following.kind == "number" or (following.kind == "name" and following.text not in ("of", "mod")):
        if left_apart or not right_apart:
            return False
    else:
        return True
    raise CannotCompute(TWO_READINGS)
