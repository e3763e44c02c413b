"""Functions that Python computes with floats, to about 15 digits, and how far each result may be off."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

from wayline.tool_registry.calculation.exact_numbers import CannotCompute, Number, largest, remainder
from wayline.tool_registry.calculation.powers import approximate

PI = Number(Fraction(Decimal("3.1415926535897932384626433832795028841971693993751")), Decimal("1e-49"))
TAU = Number(2 * PI.value, 2 * PI.error)
ANGLE_MAX = 4
"""A larger angle is taken into one turn first: floats know only its first digits."""

FloatFunction = Callable[..., float]
Function = Callable[[Sequence[Number]], Number]


def of_floats(name: str, work: FloatFunction) -> Function:
    """Return a function of numbers that is computed with floats."""

    def function(arguments: Sequence[Number]) -> Number:
        try:
            inputs = [float(one.value) for one in arguments]
            result = work(*inputs)
            error = 4 * math.ulp(result) + sum(
                _difference(work, inputs, place, argument) for place, argument in enumerate(arguments)
            )
            return approximate(result, Decimal(error))
        except (ValueError, OverflowError):
            given = ", ".join(f"{float(one.value):g}" for one in arguments if abs(one.value) < 10**300)
            raise CannotCompute(f"{name}({given}) is not defined, or too large") from None

    return function


def of_an_angle(name: str, work: FloatFunction) -> Function:
    """Return a function of an angle in radians that is the same after each turn."""
    of_one_turn = of_floats(name, work)

    def function(arguments: Sequence[Number]) -> Number:
        angle = arguments[0]
        if abs(angle.value) <= ANGLE_MAX:
            return of_one_turn([angle])
        try:
            return of_one_turn([remainder(angle, TAU)])
        except CannotCompute:
            raise CannotCompute(f"{name} of so large a number is not known: give an angle below 10^40") from None

    return function


def _difference(work: FloatFunction, inputs: Sequence[float], place: int, argument: Number) -> float:
    """Return how far the result may be off because a float holds an argument only nearly."""
    off = float(largest(Number(argument.value - Fraction(inputs[place]), argument.error)))
    if not off:
        return 0.0
    step = max(off, math.ulp(inputs[place]))
    result, most = work(*inputs), 0.0
    for near in (inputs[place] - step, inputs[place] + step):
        # Just beyond the ends of asin, for instance, it is not defined.
        with contextlib.suppress(ValueError):
            most = max(most, abs(work(*inputs[:place], near, *inputs[place + 1 :]) - result))
    return 2 * most
