"""The functions and constants that an expression may use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from types import MappingProxyType

from wayline.tool_registry.calculation.exact_numbers import (
    BITS_MAX,
    TOO_LARGE,
    UP,
    CannotCompute,
    Number,
    add,
    divide,
    floor,
    multiply,
    negative,
    remainder,
    size,
    subtract,
)
from wayline.tool_registry.calculation.float_functions import PI, TAU, of_an_angle, of_floats
from wayline.tool_registry.calculation.powers import cube_root, exp, ln, log, power, root

FACTORIAL_MAX = 1_000
ROUND_DIGITS_MAX = 100
_UNITS = Number(Fraction(0))
"""The places that round keeps where none are given."""

Function = Callable[[Sequence[Number]], Number]

CONSTANTS: Mapping[str, Number] = MappingProxyType(
    {
        "pi": PI,
        "e": Number(Fraction(Decimal("2.7182818284590452353602874713526624977572470937000")), Decimal("1e-49")),
        "tau": TAU,
    }
)


def _checked(name: str, least: int, most: int | None, work: Function) -> Function:
    def function(arguments: Sequence[Number]) -> Number:
        if len(arguments) < least or (most is not None and len(arguments) > most):
            count = str(least) if least == most else f"{least} to {most}" if most else f"at least {least}"
            raise CannotCompute(f"{name} takes {count} argument{'' if count == '1' else 's'}, not {len(arguments)}")
        return work(arguments)

    return function


def _each(work: Callable[..., Number]) -> Function:
    """Make a function of one that takes its arguments one by one."""
    return lambda arguments: work(*arguments)


def _whole(name: str, work: Callable[..., int]) -> Function:
    """Make a function of whole numbers of one that computes with integers."""

    def function(arguments: Sequence[Number]) -> Number:
        if any(one.value.denominator != 1 or one.value < 0 for one in arguments):
            raise CannotCompute(f"{name} takes whole numbers that are not negative")
        if not all(one.exact for one in arguments):
            raise CannotCompute(f"{name} takes numbers that are known in full, and one is rounded: write round(…)")
        return Number(Fraction(work(*(one.value.numerator for one in arguments))))

    return function


def _factorial(number: int) -> int:
    if number > FACTORIAL_MAX:
        raise CannotCompute(f"factorial is computed up to {FACTORIAL_MAX}; lgamma(n + 1) is its logarithm")
    return math.factorial(number)


def _chosen(name: str, work: Callable[[int, int], int]) -> Function:
    def function(n: int, k: int) -> int:
        if n > FACTORIAL_MAX:
            raise CannotCompute(f"{name} is computed up to n = {FACTORIAL_MAX}")
        return work(n, k)

    return _whole(name, function)


def _lcm(*numbers: int) -> int:
    result = 1
    for number in numbers:
        result = math.lcm(result, number)
        if result.bit_length() > BITS_MAX:
            raise CannotCompute(TOO_LARGE)
    return result


def _round(number: Number, places: Number = _UNITS) -> Number:
    if not places.exact or places.value.denominator != 1 or abs(places.value) > ROUND_DIGITS_MAX:
        raise CannotCompute(f"round(x, places) takes a whole number of places, at most {ROUND_DIGITS_MAX}")
    scale = Fraction(10) ** places.value.numerator
    # Half away from zero, as people round: not to the even neighbour.
    shifted = Number(abs(number.value) * scale + Fraction(1, 2), UP.multiply(number.error, size(scale)))
    nearest = floor(shifted)
    rounded = Number(nearest.value / scale, UP.divide(nearest.error, size(scale)))
    return negative(rounded) if number.value < 0 else rounded


def _ceil(number: Number) -> Number:
    return negative(floor(negative(number)))


def _trunc(number: Number) -> Number:
    return floor(number) if number.value >= 0 else _ceil(number)


def _log(arguments: Sequence[Number]) -> Number:
    if len(arguments) == 1:
        raise CannotCompute("log needs its base: ln(x), log10(x), log2(x) or log(x, base)")
    return log(arguments[0], arguments[1])


def _of_values(work: Callable[[list[Fraction]], Fraction]) -> Function:
    """Make a function of one that chooses among the values: as exact as the least exact of them."""
    return lambda arguments: Number(work([one.value for one in arguments]), max(one.error for one in arguments))


def _median(arguments: Sequence[Number]) -> Number:
    ordered, middle = sorted(arguments, key=lambda one: one.value), len(arguments) // 2
    value = ordered[middle] if len(ordered) % 2 else _mean(ordered[middle - 1 : middle + 1])
    return Number(value.value, max(value.error, *(one.error for one in arguments)))


def _sum(arguments: Sequence[Number]) -> Number:
    return reduce(add, arguments)


def _mean(arguments: Sequence[Number]) -> Number:
    return divide(_sum(arguments), Number(Fraction(len(arguments))))


def _squares(arguments: Sequence[Number]) -> Number:
    return _sum([multiply(one, one) for one in arguments])


def _variance(arguments: Sequence[Number]) -> Number:
    mean = _mean(arguments)
    return divide(_squares([subtract(one, mean) for one in arguments]), Number(Fraction(len(arguments) - 1)))


def _percent_change(old: Number, new: Number) -> Number:
    if old.value == 0:
        raise CannotCompute("percent_change(old, new): from zero there is no change in per cent")
    change = divide(subtract(new, old), Number(abs(old.value), old.error))
    return multiply(change, Number(Fraction(100)))


def _degrees(angle: Number) -> Number:
    return divide(multiply(angle, Number(Fraction(180))), PI)


def _radians(angle: Number) -> Number:
    return divide(multiply(angle, PI), Number(Fraction(180)))


def _to_base(base: int) -> Function:
    return lambda arguments: log(arguments[0], Number(Fraction(base)))


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        name: _checked(name, least, most, work)
        for name, least, most, work in (
            ("abs", 1, 1, _each(lambda number: Number(abs(number.value), number.error))),
            ("sqrt", 1, 1, _each(root)),
            ("cbrt", 1, 1, _each(cube_root)),
            ("pow", 2, 2, _each(power)),
            ("exp", 1, 1, _each(exp)),
            ("ln", 1, 1, _each(ln)),
            ("log", 1, 2, _log),
            ("log2", 1, 1, _to_base(2)),
            ("log10", 1, 1, _to_base(10)),
            ("lgamma", 1, 1, of_floats("lgamma", math.lgamma)),
            ("round", 1, 2, _each(_round)),
            ("floor", 1, 1, _each(floor)),
            ("ceil", 1, 1, _each(_ceil)),
            ("trunc", 1, 1, _each(_trunc)),
            ("mod", 2, 2, _each(remainder)),
            ("gcd", 2, None, _whole("gcd", math.gcd)),
            ("lcm", 2, None, _whole("lcm", _lcm)),
            ("factorial", 1, 1, _whole("factorial", _factorial)),
            ("comb", 2, 2, _chosen("comb", math.comb)),
            ("perm", 2, 2, _chosen("perm", math.perm)),
            ("min", 1, None, _of_values(min)),
            ("max", 1, None, _of_values(max)),
            ("sum", 1, None, _sum),
            ("mean", 1, None, _mean),
            ("median", 1, None, _median),
            ("variance", 2, None, _variance),
            ("stdev", 2, None, lambda arguments: root(_variance(arguments))),
            ("percent_change", 2, 2, _each(_percent_change)),
            ("sin", 1, 1, of_an_angle("sin", math.sin)),
            ("cos", 1, 1, of_an_angle("cos", math.cos)),
            ("tan", 1, 1, of_an_angle("tan", math.tan)),
            ("asin", 1, 1, of_floats("asin", math.asin)),
            ("acos", 1, 1, of_floats("acos", math.acos)),
            ("atan", 1, 1, of_floats("atan", math.atan)),
            ("atan2", 2, 2, of_floats("atan2", math.atan2)),
            ("sinh", 1, 1, of_floats("sinh", math.sinh)),
            ("cosh", 1, 1, of_floats("cosh", math.cosh)),
            ("tanh", 1, 1, of_floats("tanh", math.tanh)),
            ("hypot", 1, None, lambda arguments: root(_squares(arguments))),
            ("degrees", 1, 1, _each(_degrees)),
            ("radians", 1, 1, _each(_radians)),
        )
    }
)
