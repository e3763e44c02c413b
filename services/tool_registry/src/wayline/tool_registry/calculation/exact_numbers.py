"""Numbers as the calculator holds them: fractions, and how far the true value may be from each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal, DivisionByZero, InvalidOperation, Overflow, Underflow
from fractions import Fraction

BITS_MAX = 12_000
"""Of a numerator or a denominator: about 3,600 digits, which Python still writes at once."""
DIGITS = 50
"""What roots, logarithms and powers are computed to."""
WIDE = Context(prec=DIGITS, Emax=999_999, Emin=-999_999, traps=[DivisionByZero, InvalidOperation, Overflow, Underflow])
ROUNDED = Decimal("1e-49")
"""How far a number that WIDE has rounded may be from the true one, as a part of it."""
LEADING_BITS, SIZE_BITS = 170, 40
"""How much of a number is kept where it is rounded, and where only its size counts."""
UP = Context(prec=6, rounding=ROUND_UP, Emax=999_999, Emin=-999_999)
"""Rounds errors, so that none is larger than it is said to be."""
DOWN = Context(prec=6, rounding=ROUND_DOWN, Emax=999_999, Emin=-999_999)
ERROR_MIN, ERROR_MAX = Decimal("1e-4000"), Decimal("1e4000")
"""Errors are kept between these, beyond which no number is either."""
NEAR = Decimal("1e-6")
"""How near a rounded number is to a whole one at most, to count as it."""
TOO_LARGE = "a number on the way is too large or too small: it has more than 3,600 digits"
UNKNOWN = (
    f"no digit of the result is known: roots, logarithms, exp and powers are computed to {DIGITS} digits, sin, tan and "
    "the like to 15, and here these cancel or the result depends on the digits after them"
)
MAYBE_ZERO = "this divides by a number that is zero as far as it is known"


class CannotCompute(Exception):
    """What was asked cannot be computed; the text says what to write instead."""


@dataclass(frozen=True, slots=True)
class Number:
    """A value, and how far the true one may be from it."""

    value: Fraction
    error: Decimal = Decimal(0)
    """At most; 0 for a number that is known in full."""
    percent: bool = False
    """It was written with a per cent sign."""

    @property
    def exact(self) -> bool:
        return not self.error


def bounded(number: Number) -> Number:
    """Return a number that later steps can bear: one with too many digits is rounded. Raises CannotCompute."""
    value, error = number.value, number.error
    if error and not ERROR_MIN < error < ERROR_MAX:
        if error >= ERROR_MAX:
            raise CannotCompute(TOO_LARGE)
        error = ERROR_MIN
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits > (BITS_MAX // 8 if error else BITS_MAX):
        if abs(value.numerator.bit_length() - value.denominator.bit_length()) > BITS_MAX:
            raise CannotCompute(TOO_LARGE)
        error = UP.add(error, UP.multiply(size(value), ROUNDED))
        leading, power = _leading(value, LEADING_BITS)
        value = leading * Fraction(2) ** power
    return Number(value, error, number.percent)


def decimal_of(value: Fraction) -> Decimal:
    """Return a fraction as a decimal number, rounded."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= BITS_MAX // 8:
        return WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
    # To write thousands of digits as a decimal number takes a millisecond.
    leading, power = _leading(value, LEADING_BITS)
    return WIDE.multiply(Decimal(leading), WIDE.power(Decimal(2), Decimal(power)))


def _leading(value: Fraction, bits: int) -> tuple[int, int]:
    """Return the leading bits of a value as a whole number, and the power of two to multiply it with."""
    power = value.numerator.bit_length() - value.denominator.bit_length() - bits
    if power > 0:
        return value.numerator // (value.denominator << power), power
    return (value.numerator << -power) // value.denominator, power


def size(value: Fraction) -> Decimal:
    """Return how far a value is from zero, rounded up."""
    leading, power = _leading(abs(value), SIZE_BITS)
    return UP.multiply(Decimal(leading + 1), UP.power(Decimal(2), Decimal(power))) if value else Decimal(0)


def largest(number: Number) -> Decimal:
    """Return how far the true value may be from zero at most."""
    return UP.add(size(number.value), number.error)


def smallest(number: Number) -> Decimal:
    """Return how far the true value is from zero at least: 0 for one that may be zero."""
    leading, power = _leading(abs(number.value), SIZE_BITS)
    least = DOWN.multiply(Decimal(leading), DOWN.power(Decimal(2), Decimal(power)))
    return max(DOWN.subtract(least, number.error), Decimal(0))


def add(left: Number, right: Number) -> Number:
    """Return the sum. Raises CannotCompute."""
    return bounded(_sum(left, right))


def subtract(left: Number, right: Number) -> Number:
    """Return the difference. Raises CannotCompute."""
    return bounded(_sum(left, negative(right)))


def multiply(left: Number, right: Number) -> Number:
    """Return the product. Raises CannotCompute."""
    return bounded(_product(left, right))


def divide(left: Number, right: Number) -> Number:
    """Return the quotient. Raises CannotCompute and ZeroDivisionError."""
    return bounded(_quotient(left, right))


def negative(number: Number) -> Number:
    """Return the number with the other sign."""
    return Number(-number.value, number.error, number.percent)


def floor_divide(left: Number, right: Number) -> Number:
    """Return the largest whole number that is not above the quotient. Raises CannotCompute and ZeroDivisionError."""
    return bounded(floor(_quotient(left, right)))


def remainder(left: Number, right: Number) -> Number:
    """Return what a division leaves, with the sign of the divisor. Raises CannotCompute and ZeroDivisionError."""
    return bounded(_sum(left, negative(_product(right, floor(_quotient(left, right))))))


def floor(number: Number) -> Number:
    """Return the largest whole number that is not above. Raises CannotCompute where it is not known.

    A rounded number that may be a whole one counts as it, so that floor(sqrt(2)^2) is about 2.
    """
    nearest = Fraction(round(number.value))
    if number.exact or size(number.value - nearest) > number.error:
        return Number(Fraction(math.floor(number.value)))
    if number.error > NEAR:
        raise CannotCompute(
            "the whole part of a rounded number is not known: it has more digits than the number is computed to"
        )
    return Number(nearest, number.error)


def _sum(left: Number, right: Number) -> Number:
    return Number(left.value + right.value, UP.add(left.error, right.error))


def _product(left: Number, right: Number) -> Number:
    value = left.value * right.value
    if left.exact and right.exact:
        return Number(value)
    error = UP.add(UP.multiply(largest(left), right.error), UP.multiply(size(right.value), left.error))
    return Number(value, error)


def _quotient(left: Number, right: Number) -> Number:
    if left.exact and right.exact:
        return Number(left.value / right.value)
    if not smallest(right):
        raise ZeroDivisionError if right.exact else CannotCompute(MAYBE_ZERO)
    value = left.value / right.value
    error = UP.add(left.error, UP.multiply(size(value), right.error))
    return Number(value, UP.divide(error, smallest(right)))
