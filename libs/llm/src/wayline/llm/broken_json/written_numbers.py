"""Numbers as a model wrote them: handed on exactly, or not at all."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

from wayline.contracts.strict_json import INTEGER_MAX, INTEGER_MIN

DIGITS_MAX = 400


class Inexact(ValueError):
    """A number that would become another one."""


def exact_integer(written: str | int) -> int:
    """Return an integer. Raises Inexact for one that encoders do not keep."""
    if isinstance(written, str) and len(written) > DIGITS_MAX:
        raise Inexact("a number has more digits than any is handed on with")
    value = int(written)
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise Inexact(f"{value} is longer than 64 bits: in quotes its digits are kept")
    return value


def exact_float(written: str) -> float:
    """Return a number with a fraction or an exponent. Raises Inexact where a float is another number."""
    value = math.nan if len(written) > DIGITS_MAX else float(written)
    if not math.isfinite(value) or not is_written(value, written):
        raise Inexact(f"{written[:DIGITS_MAX]} is not kept exactly: in quotes its digits are")
    return value


def is_written(value: float, written: str) -> bool:
    """Return whether a number is the one that a text says, digit for digit."""
    try:
        return Decimal(repr(value)) == Decimal(written)
    except InvalidOperation:
        return False
