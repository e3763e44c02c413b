"""Write a number: whole where it is exact and short enough, else rounded, and then saying so."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, ROUND_UP, Context, Decimal
from fractions import Fraction

from wayline.tool_registry.calculation.exact_numbers import (
    DOWN,
    UNKNOWN,
    CannotCompute,
    Number,
    largest,
    size,
)

SHOWN_DIGITS = 20
"""Of a fraction that has no end; more are shown only of what is exact."""
ROUNDED_DIGITS = 15
"""Of a result that is known only so far; fewer where fewer are known."""
EXACT_DIGITS_MAX = 60
FRACTION_CHARS_MAX = 40


def shown(number: Number) -> str:
    """Write a number, a rounded one with "about". Raises CannotCompute where nothing of it is known."""
    value = number.value
    if not number.exact:
        return f"about {_known(number)}"
    if value.denominator == 1:
        return str(value.numerator)
    decimal = _decimal(value, EXACT_DIGITS_MAX)
    if Fraction(decimal) == value:
        return _plain(decimal)
    ratio = f"{value.numerator}/{value.denominator}"
    exactly = f" (exactly {ratio})" if len(ratio) <= FRACTION_CHARS_MAX else ""
    return f"about {_plain(_decimal(value, SHOWN_DIGITS))}{exactly}"


def _known(number: Number) -> str:
    """Write the digits of a rounded number that are known. Raises CannotCompute where none is."""
    known = DOWN.divide(size(number.value), number.error).adjusted() if number.value else 0
    if known >= 1:
        return _plain(_decimal(number.value, min(known, ROUNDED_DIGITS)))
    if largest(number) >= 1:
        raise CannotCompute(UNKNOWN)
    return f"0 (off by at most {Context(prec=1, rounding=ROUND_UP).plus(largest(number)):E})"


def _decimal(value: Fraction, digits: int) -> Decimal:
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=99_999, Emin=-99_999)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _plain(number: Decimal) -> str:
    number = number.normalize(Context(prec=EXACT_DIGITS_MAX))
    return f"{number:f}" if -12 < number.adjusted() < 40 else f"{number:E}"
