"""Split an expression into its numbers, names and signs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wayline.tool_registry.calculation.exact_numbers import CannotCompute

NO_COMMAS = "write thousands without commas"
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d{1,4})?)"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|//|[-+*/%^!(),\u00d7\u00f7\u00b7\u2212]))"
)
_SAME = {"\u00d7": "*", "\u00b7": "*", "\u00f7": "/", "\u2212": "-", "^": "**"}
"""Signs as they are printed, and how they are typed."""


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
    return list(_split(expression))


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
    """Return whether the `%` at a place is per cent; else it is the remainder."""
    following = [*found, END][place + 1]
    begins_operand = following.kind in ("number", "name") and following.text not in ("of", "mod")
    return following.text != "(" and not begins_operand
