"""The functions and constants that an expression may use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

from wayline.tool_registry.calculation.exact_numbers import (
    WIDE,
    CannotCompute,
    Number,
    approximate,
    decimal_of,
    power,
    root,
)

FACTORIAL_MAX = 1_000
ROUND_DIGITS_MAX = 100

Function = Callable[[Sequence[Number]], Number]

CONSTANTS: Mapping[str, Fraction] = MappingProxyType(
    {
        "pi": Fraction(Decimal("3.1415926535897932384626433832795028841971693993751")),
        "e": Fraction(Decimal("2.7182818284590452353602874713526624977572470937000")),
        "tau": Fraction(Decimal("6.2831853071795864769252867665590057683943387987502")),
    }
)


def _checked(name: str, least: int, most: int | None, work: Function) -> Function:
    def function(arguments: Sequence[Number]) -> Number:
        if len(arguments) < least or (most is not None and len(arguments) > most):
            count = str(least) if least == most else f"{least} to {most}" if most else f"at least {least}"
            raise CannotCompute(f"{name} takes {count} argument{'' if count == '1' else 's'}, not {len(arguments)}")
        return work(arguments)

    return function


def _exact(work: Callable[..., Fraction | int]) -> Function:
    """Make a function of one whose result is as exact as its arguments are."""

    def function(arguments: Sequence[Number]) -> Number:
        result = Fraction(work(*(one.value for one in arguments)))
        return Number(result, exact=all(one.exact for one in arguments))

    return function


def _float(name: str, work: Callable[..., float]) -> Function:
    def function(arguments: Sequence[Number]) -> Number:
        try:
            return approximate(work(*(float(one.value) for one in arguments)))
        except (ValueError, OverflowError):
            given = ", ".join(f"{float(one.value):g}" for one in arguments if abs(one.value) < 10**300)
            raise CannotCompute(f"{name}({given}) is not defined, or too large") from None

    return function


def _whole(name: str, *values: Fraction) -> list[int]:
    if any(one.denominator != 1 or one < 0 for one in values):
        raise CannotCompute(f"{name} takes whole numbers that are not negative")
    return [one.numerator for one in values]


def _factorial(value: Fraction) -> int:
    (number,) = _whole("factorial", value)
    if number > FACTORIAL_MAX:
        raise CannotCompute(f"factorial is computed up to {FACTORIAL_MAX}; lgamma(n + 1) is its logarithm")
    return math.factorial(number)


def _chosen(name: str, work: Callable[[int, int], int]) -> Function:
    def function(n: Fraction, k: Fraction) -> int:
        numbers = _whole(name, n, k)
        if numbers[0] > FACTORIAL_MAX:
            raise CannotCompute(f"{name} is computed up to n = {FACTORIAL_MAX}")
        return work(numbers[0], numbers[1])

    return _exact(function)


def _round(arguments: Sequence[Number]) -> Number:
    places = arguments[1].value if len(arguments) > 1 else Fraction(0)
    if places.denominator != 1 or abs(places) > ROUND_DIGITS_MAX:
        raise CannotCompute(f"round(x, places) takes a whole number of places, at most {ROUND_DIGITS_MAX}")
    scale = Fraction(10) ** places.numerator
    value = arguments[0].value * scale
    # Half away from zero, as people round: not to the even neighbour.
    nearest = math.floor(abs(value) + Fraction(1, 2))
    return Number(Fraction(nearest if value >= 0 else -nearest) / scale)


def _sign_kept(work: Callable[[Fraction], int]) -> Function:
    """Make a rounding function: its result is exact, also of a rounded value."""
    return lambda arguments: Number(Fraction(work(arguments[0].value)))


def _ln(number: Number) -> Decimal:
    if number.value <= 0:
        raise CannotCompute("only a number above zero has a logarithm")
    return WIDE.ln(decimal_of(number.value))


def _log(arguments: Sequence[Number]) -> Number:
    if len(arguments) == 1:
        raise CannotCompute("log needs its base: ln(x), log10(x), log2(x) or log(x, base)")
    return _to_base(arguments[0], arguments[1])


def _to_base(number: Number, base: Number) -> Number:
    """Return a logarithm: exactly where it is a whole number."""
    if base.value in (0, 1) or base.value < 0:
        raise CannotCompute("the base of a logarithm is a number above zero that is not 1")
    result = approximate(WIDE.divide(_ln(number), _ln(base)))
    nearest = round(result.value)
    if abs(nearest) < 4_000 and number.exact and base.exact:
        try:
            if power(base, Number(Fraction(nearest))).value == number.value:
                return Number(Fraction(nearest))
        except CannotCompute:
            return result
    return result


def _exp(arguments: Sequence[Number]) -> Number:
    if abs(arguments[0].value) > 8_000:
        raise CannotCompute("exp(x) is computed for x between -8000 and 8000")
    return approximate(WIDE.exp(decimal_of(arguments[0].value)))


def _mean(*values: Fraction) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _median(*values: Fraction) -> Fraction:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _variance(*values: Fraction) -> Fraction:
    mean = _mean(*values)
    return sum(((one - mean) ** 2 for one in values), Fraction(0)) / (len(values) - 1)


def _deviation(arguments: Sequence[Number]) -> Number:
    return root(_exact(_variance)(arguments))


def _percent_change(old: Fraction, new: Fraction) -> Fraction:
    if old == 0:
        raise CannotCompute("percent_change(old, new): from zero there is no change in per cent")
    return (new - old) / abs(old) * 100


def _mod(a: Fraction, b: Fraction) -> Fraction:
    return a - b * math.floor(a / b)


def _gcd(*values: Fraction) -> int:
    return math.gcd(*_whole("gcd", *values))


def _lcm(*values: Fraction) -> int:
    return math.lcm(*_whole("lcm", *values))


def _cube_root(arguments: Sequence[Number]) -> Number:
    number = arguments[0]
    size = power(Number(abs(number.value), exact=number.exact), Number(Fraction(1, 3)))
    nearest = Fraction(round(size.value))
    if number.exact and nearest**3 == abs(number.value):
        size = Number(nearest)
    return Number(-size.value if number.value < 0 else size.value, exact=size.exact)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        name: _checked(name, least, most, work)
        for name, least, most, work in (
            ("abs", 1, 1, _exact(Fraction.__abs__)),
            ("sqrt", 1, 1, lambda arguments: root(arguments[0])),
            ("cbrt", 1, 1, _cube_root),
            ("pow", 2, 2, lambda arguments: power(arguments[0], arguments[1])),
            ("exp", 1, 1, _exp),
            ("ln", 1, 1, lambda arguments: approximate(_ln(arguments[0]))),
            ("log", 1, 2, _log),
            ("log2", 1, 1, lambda arguments: _to_base(arguments[0], Number(Fraction(2)))),
            ("log10", 1, 1, lambda arguments: _to_base(arguments[0], Number(Fraction(10)))),
            ("lgamma", 1, 1, _float("lgamma", math.lgamma)),
            ("round", 1, 2, _round),
            ("floor", 1, 1, _sign_kept(math.floor)),
            ("ceil", 1, 1, _sign_kept(math.ceil)),
            ("trunc", 1, 1, _sign_kept(math.trunc)),
            ("mod", 2, 2, _exact(_mod)),
            ("gcd", 2, None, _exact(_gcd)),
            ("lcm", 2, None, _exact(_lcm)),
            ("factorial", 1, 1, _exact(_factorial)),
            ("comb", 2, 2, _chosen("comb", math.comb)),
            ("perm", 2, 2, _chosen("perm", math.perm)),
            ("min", 1, None, _exact(lambda *values: min(values))),
            ("max", 1, None, _exact(lambda *values: max(values))),
            ("sum", 1, None, _exact(lambda *values: sum(values, Fraction(0)))),
            ("mean", 1, None, _exact(_mean)),
            ("median", 1, None, _exact(_median)),
            ("variance", 2, None, _exact(_variance)),
            ("stdev", 2, None, _deviation),
            ("percent_change", 2, 2, _exact(_percent_change)),
            ("sin", 1, 1, _float("sin", math.sin)),
            ("cos", 1, 1, _float("cos", math.cos)),
            ("tan", 1, 1, _float("tan", math.tan)),
            ("asin", 1, 1, _float("asin", math.asin)),
            ("acos", 1, 1, _float("acos", math.acos)),
            ("atan", 1, 1, _float("atan", math.atan)),
            ("atan2", 2, 2, _float("atan2", math.atan2)),
            ("sinh", 1, 1, _float("sinh", math.sinh)),
            ("cosh", 1, 1, _float("cosh", math.cosh)),
            ("tanh", 1, 1, _float("tanh", math.tanh)),
            ("hypot", 1, None, _float("hypot", math.hypot)),
            ("degrees", 1, 1, _float("degrees", math.degrees)),
            ("radians", 1, 1, _float("radians", math.radians)),
        )
    }
)
