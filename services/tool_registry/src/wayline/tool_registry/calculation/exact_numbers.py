"""Numbers as the calculator holds them: exact fractions, as far as there are limits for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

BITS_MAX = 12_000
"""Of a numerator or a denominator: about 3,600 digits, which Python still writes at once."""
DIGITS = 50
"""What roots, logarithms and powers are computed to."""
WIDE = Context(prec=DIGITS, Emax=999_999, Emin=-999_999)
TOO_LARGE = "a number on the way is too large or too small: it has more than 3,600 digits"


class CannotCompute(Exception):
    """What was asked cannot be computed; the text says what to write instead."""


@dataclass(frozen=True, slots=True)
class Number:
    """A value, and whether it is known in full."""

    value: Fraction
    exact: bool = True
    percent: bool = False
    """It was written with a per cent sign."""


def bounded(number: Number) -> Number:
    """Return a number that later steps can bear: one with too many digits is rounded. Raises CannotCompute."""
    value = number.value
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits <= (BITS_MAX if number.exact else BITS_MAX // 8):
        return number
    if abs(value.numerator.bit_length() - value.denominator.bit_length()) > BITS_MAX:
        raise CannotCompute(TOO_LARGE)
    return Number(Fraction(decimal_of(value)), exact=False, percent=number.percent)


def decimal_of(value: Fraction) -> Decimal:
    """Return a fraction as a decimal number, rounded."""
    return WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))


def power(base: Number, exponent: Number) -> Number:
    """Raise a number to a power: exactly where the exponent is a whole number. Raises CannotCompute."""
    whole = exponent.value.denominator == 1
    if base.value == 0 and exponent.value < 0:
        raise ZeroDivisionError
    if whole and exponent.exact:
        if base.value in (0, 1, -1):
            return Number(base.value if exponent.value % 2 or (base.value == 0 and exponent.value) else Fraction(1))
        times = exponent.value.numerator
        bits = max(base.value.numerator.bit_length(), base.value.denominator.bit_length())
        if base.exact and abs(times) * bits <= BITS_MAX:
            return Number(base.value**times)
    elif base.value < 0:
        raise CannotCompute("a negative number has no real power with a fraction in it")
    if base.value == 0:
        return Number(Fraction(0), exact=base.exact)
    if exponent.value == Fraction(1, 2) and exponent.exact:
        return root(base)
    return approximate(WIDE.power(decimal_of(base.value), decimal_of(exponent.value)))


def root(number: Number) -> Number:
    """Return the square root: exactly where there is one. Raises CannotCompute."""
    value = number.value
    if value < 0:
        raise CannotCompute("a negative number has no real square root")
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Number(Fraction(top, bottom), exact=number.exact)
    return approximate(WIDE.sqrt(decimal_of(value)))


def approximate(value: Decimal | float) -> Number:
    """Return a result that is not exact. Raises CannotCompute for one that is no number, or too large."""
    try:
        result = Fraction(value)
    except (OverflowError, ValueError):
        raise CannotCompute("the result is no finite number") from None
    if max(result.numerator.bit_length(), result.denominator.bit_length()) > BITS_MAX:
        raise CannotCompute(TOO_LARGE)
    return Number(result, exact=False)
