"""Keywords for numbers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any

from wayline.schemas.keywords.parts import Make, Part, is_number
from wayline.schemas.nodes import Check, Evaluated, Run
from wayline.schemas.problems import says

Compare = Callable[[Any, Any], bool]


def _bound(fine: Compare, words: str) -> Make:
    def make(part: Part) -> Check:
        return _compared(part.number(), fine, words)

    return make


def _exclusive(fine: Compare, words: str, *, with_equal: str) -> Make:
    def make(part: Part) -> Check | None:
        if isinstance(part.value, bool):
            # As drafts before the sixth have it.
            bound = part.schema.get(with_equal)
            return _compared(bound, fine, words) if part.value and is_number(bound) else None
        return _compared(part.number(), fine, words)

    return make


def _compared(bound: Any, fine: Compare, words: str) -> Check:
    beyond = says(f"is {words} of {bound!r}")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return not is_number(value) or fine(value, bound) or run.fail(beyond, value)

    return check


def _multiple_of(part: Part) -> Check:
    divisor = part.number()
    if divisor <= 0:
        raise part.wrong("a number above 0")
    exact = _exact(divisor)
    other = says(f"is not a multiple of {divisor!r}")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        if not is_number(value) or (isfinite(value) and _exact(value) % exact == 0):
            return True
        return run.fail(other, value)

    return check


def _exact(number: int | float) -> Fraction:
    # As it was written: 0.1 is a tenth.
    return Fraction(repr(number))


KEYWORDS: dict[str, Make] = {
    "minimum": _bound(ge, "less than the minimum"),
    "maximum": _bound(le, "greater than the maximum"),
    "exclusiveMinimum": _exclusive(gt, "less than or equal to the minimum", with_equal="minimum"),
    "exclusiveMaximum": _exclusive(lt, "greater than or equal to the maximum", with_equal="maximum"),
    "multipleOf": _multiple_of,
}
