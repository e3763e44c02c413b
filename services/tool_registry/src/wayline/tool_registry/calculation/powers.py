"""Powers, roots and logarithms: exact where they are fractions, else rounded, with the error that this brings."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from wayline.tool_registry.calculation.exact_numbers import (
    BITS_MAX,
    MAYBE_ZERO,
    ROUNDED,
    UNKNOWN,
    UP,
    WIDE,
    CannotCompute,
    Number,
    bounded,
    decimal_of,
    divide,
    largest,
    size,
    smallest,
)

GUESS = WIDE.add(Decimal(1), Decimal("1e-45"))
"""What a rounded root is multiplied with, so that it is not below the true one."""
NO_REAL_POWER = "a negative number has no real power with a fraction in it"
ABOVE_ZERO = "only a number above zero has a logarithm"


def power(base: Number, exponent: Number) -> Number:
    """Raise a number to a power: exactly where the result is a fraction. Raises CannotCompute."""
    if exponent.exact and exponent.value == 0:
        return Number(Fraction(1))
    if base.exact and exponent.exact and (result := exact_power(base.value, exponent.value)) is not None:
        return Number(result)
    if not smallest(base):
        return _power_of_zero(base, exponent)
    if base.value < 0 and not (exponent.exact and exponent.value.denominator == 1):
        raise CannotCompute(NO_REAL_POWER)
    result = WIDE.power(decimal_of(base.value), decimal_of(exponent.value))
    logarithm = UP.abs(UP.ln(abs(decimal_of(base.value))))
    off = UP.add(
        UP.multiply(size(exponent.value), UP.add(UP.divide(base.error, smallest(base)), ROUNDED)),
        UP.multiply(logarithm, UP.add(exponent.error, UP.multiply(size(exponent.value), ROUNDED))),
    )
    return _exponential(result, off)


def exact_power(base: Fraction, exponent: Fraction) -> Fraction | None:
    """Return a power that is a fraction; None for one that is not, or that has too many digits."""
    if base == 0:
        if exponent < 0:
            raise ZeroDivisionError
        return Fraction(exponent == 0)
    root = exact_root(base, exponent.denominator)
    if root is None:
        return None
    if abs(root) == 1:
        return root ** (exponent.numerator % 2)
    bits = math.log2(max(abs(root.numerator), root.denominator)) * abs(exponent.numerator)
    return root**exponent.numerator if bits < BITS_MAX else None


def exact_root(value: Fraction, degree: int) -> Fraction | None:
    """Return a root that is a fraction; None for one that is not."""
    if degree == 1:
        return value
    if value < 0:
        return None
    top, bottom = _whole_root(value.numerator, degree), _whole_root(value.denominator, degree)
    return None if top is None or bottom is None else Fraction(top, bottom)


def _whole_root(number: int, degree: int) -> int | None:
    """Return a root that is a whole number, by Newton's method from above; None for one that is not."""
    if number < 2:
        return number
    if degree >= number.bit_length():
        return None
    near = WIDE.power(WIDE.create_decimal(number), WIDE.divide(Decimal(1), Decimal(degree)))
    guess = int(WIDE.multiply(near, GUESS)) + 1
    while (better := ((degree - 1) * guess + number // guess ** (degree - 1)) // degree) < guess:
        guess = better
    return guess if guess**degree == number else None


def root(number: Number) -> Number:
    """Return the square root: exactly where it is a fraction. Raises CannotCompute."""
    if number.exact and (exact := exact_root(number.value, 2)) is not None:
        return Number(exact)
    if UP.multiply(number.error, Decimal(2)) > smallest(number):
        # It may be zero, or nearly.
        return Number(Fraction(0), UP.multiply(UP.sqrt(largest(number)), Decimal(2)))
    if number.value < 0:
        raise CannotCompute("a negative number has no real square root")
    return _exponential(WIDE.sqrt(decimal_of(number.value)), UP.add(UP.divide(number.error, smallest(number)), ROUNDED))


def cube_root(number: Number) -> Number:
    """Return the cube root, also of a number below zero. Raises CannotCompute."""
    size_of_root = power(Number(abs(number.value), number.error), Number(Fraction(1, 3)))
    return Number(-size_of_root.value if number.value < 0 else size_of_root.value, size_of_root.error)


def ln(number: Number) -> Number:
    """Return the natural logarithm. Raises CannotCompute."""
    if number.value <= 0 or not smallest(number):
        raise CannotCompute(ABOVE_ZERO)
    result = WIDE.ln(decimal_of(number.value))
    # The argument and the logarithm are rounded.
    off = UP.add(UP.divide(number.error, smallest(number)), ROUNDED)
    return approximate(result, UP.add(UP.multiply(off, Decimal(2)), UP.multiply(abs(result), ROUNDED)))


def log(number: Number, base: Number) -> Number:
    """Return the logarithm to a base: exactly where it is a whole number. Raises CannotCompute."""
    if base.value in (0, 1) or base.value < 0:
        raise CannotCompute("the base of a logarithm is a number above zero that is not 1")
    result = divide(ln(number), ln(base))
    nearest = Fraction(round(result.value))
    if number.exact and base.exact and exact_power(base.value, nearest) == number.value:
        return Number(nearest)
    return result


def exp(number: Number) -> Number:
    """Return a power of e. Raises CannotCompute."""
    if abs(number.value) > 8_000:
        raise CannotCompute("exp(x) is computed for x between -8000 and 8000")
    off = UP.add(number.error, UP.multiply(size(number.value), ROUNDED))
    return _exponential(WIDE.exp(decimal_of(number.value)), off)


def approximate(value: Decimal | float, error: Decimal) -> Number:
    """Return a rounded result. Raises CannotCompute for one that is no number, or too large."""
    try:
        return bounded(Number(Fraction(value), error))
    except (OverflowError, ValueError):
        raise CannotCompute("the result is no finite number") from None


def _exponential(result: Decimal, off: Decimal) -> Number:
    """Return a power whose logarithm may be off by so much. Raises CannotCompute where nothing of it is known."""
    if off > Decimal("0.5"):
        raise CannotCompute(UNKNOWN)
    # e^x - 1 is below 2x for such an x.
    return approximate(result, UP.multiply(abs(result), UP.add(UP.multiply(off, Decimal(2)), ROUNDED)))


def _power_of_zero(base: Number, exponent: Number) -> Number:
    """Return a power of a rounded number that may be zero. Raises CannotCompute."""
    if exponent.value <= 0 or not smallest(exponent):
        raise CannotCompute(MAYBE_ZERO)
    return Number(Fraction(0), UP.multiply(UP.power(largest(base), decimal_of(exponent.value)), Decimal(2)))
