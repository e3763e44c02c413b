"""How exact a result is: exact up to the limits, its error known beyond them, and no step without a bound."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.tool_registry.calculation import exact_numbers
from wayline.tool_registry.calculation.arithmetic import calculate
from wayline.tool_registry.calculation.exact_numbers import BITS_MAX, CannotCompute, Number


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2^10000 mod 1000", str(2**10000 % 1000)),
        ("2^6001 mod 10", "2"),
        ("3^7000 mod 10", "1"),
        ("mod(7^4001, 100)", "7"),
        ("round(3^7000) mod 10", "1"),
        ("floor(3^7000/10)", str(3**7000 // 10)),
        ("3^7000 // 10", str(3**7000 // 10)),
        ("2^11999", str(2**11999)),
        ("log2(2^10000)", "10000"),
    ],
)
def test_whole_powers_are_exact_up_to_the_limit(expression: str, value: str):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("125^(1/3)", "5"),
        ("floor(125^(1/3))", "5"),
        ("27^(2/3)", "9"),
        ("(16/81)^0.25 * 3", "2"),
        ("32^-0.4", "0.25"),
        ("(10^300)^(1/3)", f"1{'0' * 100}"),
        ("cbrt(0.001)", "0.1"),
    ],
)
def test_a_root_that_is_a_fraction_is_exact(expression: str, value: str):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("floor(sqrt(2)^2)", "about 2"),
        ("ceil(sqrt(3)*sqrt(3))", "about 3"),
        ("trunc(-sqrt(2)^2)", "about -2"),
        ("floor(tan(pi/4))", "about 1"),
        ("round(sqrt(2)^2 / 4)", "about 1"),
        ("sqrt(2)^2 // 2", "about 1"),
        ("round(sqrt(2)^2)", "2"),
        ("floor(sqrt(2))", "1"),
        ("floor(-sqrt(2))", "-2"),
        ("ceil(pi)", "4"),
    ],
)
def test_a_rounded_number_that_may_be_whole_counts_as_whole(expression: str, value: str):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sin(10^22 + 1)", "about -0.0201760234595"),
        ("cos(100)", "about 0.86231887228768"),
        ("sqrt(10^60+1) - 10^30", "about 0 (off by at most 3E-19)"),
        ("sqrt(2)^2 - 2", "about 0 (off by at most 4E-48)"),
        ("pi - 3.14159265358979323846264338327950288419716939937", "about 5E-48"),
        ("sqrt(sqrt(2)^2 - 2) + 1", "about 1"),
        ("tan(pi/2 - 10^-9)", "about 1000000000"),
    ],
)
def test_only_the_known_digits_of_a_result_are_written(expression: str, value: str):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("tan(pi/2)", "no digit of the result is known"),
        ("10^30 * (sqrt(10^60+1) - 10^30)", "no digit of the result is known"),
        ("(1 + 10^-60)^(10^60)", "no digit of the result is known"),
        ("sin(10^60)", "so large a number"),
        ("1 / (sqrt(2)^2 - 2)", "zero as far as it is known"),
        ("(sqrt(2)^2 - 2)^-1", "zero as far as it is known"),
        ("floor(exp(200))", "whole part"),
        ("exp(200) mod 10", "whole part"),
        ("round(sqrt(2), 60)", "whole part"),
        ("factorial(floor(sqrt(2)^2))", "known in full"),
    ],
)
def test_a_result_that_is_not_known_is_refused(expression: str, reason: str):
    with pytest.raises(CannotCompute, match=reason):
        calculate(expression)


@pytest.mark.parametrize("name", ["sum", "mean", "variance", "stdev", "hypot"])
def test_no_step_of_a_function_exceeds_twice_the_limit(name: str, monkeypatch: pytest.MonkeyPatch):
    terms = [f"1/{prime}^{BITS_MAX // prime.bit_length()}" for prime in (3, 5, 7, 11, 13, 17, 19, 23)]
    bits: list[int] = []
    bounded = exact_numbers.bounded

    def recorded(number: Number) -> Number:
        bits.append(max(number.value.numerator.bit_length(), number.value.denominator.bit_length()))
        return bounded(number)

    monkeypatch.setattr(exact_numbers, "bounded", recorded)
    try:
        calculate(f"{name}({', '.join(terms)})")
    except CannotCompute as error:
        assert "3,600 digits" in str(error)

    assert BITS_MAX // 2 < max(bits) <= 2 * BITS_MAX + 2


@pytest.mark.parametrize("expression", ["(1/3^5900)" + "%" * 800, "0.5" + "%" * 1_900])
def test_many_per_cent_signs_end_at_the_limit_of_digits(expression: str):
    with pytest.raises(CannotCompute, match="digits"):
        calculate(expression)


def test_a_multiple_beyond_the_limit_of_digits_is_not_computed(monkeypatch: pytest.MonkeyPatch):
    bits: list[int] = []

    def recorded(*numbers: int) -> int:
        bits.append(math.prod(numbers).bit_length())
        return math.prod(numbers)

    monkeypatch.setattr("wayline.tool_registry.calculation.functions.math.lcm", recorded)
    with pytest.raises(CannotCompute, match="digits"):
        calculate("lcm(3^7000, 5^5000, 7^4000, 11^3000, 13^3000)")

    assert max(bits) <= 2 * BITS_MAX


@given(st.integers(0, 10**60), st.integers(2, 9))
def test_the_whole_part_of_a_root_is_right_or_about(number: int, degree: int):
    found = calculate(f"floor({number}^(1/{degree}))")
    root = int(found.removeprefix("about "))

    assert root**degree <= number < (root + 1) ** degree or found.startswith("about ")


@given(st.integers(1, 10**15), st.integers(1, 10**15))
def test_rounded_roots_multiply_to_their_number(a: int, b: int):
    assert calculate(f"round(sqrt({a}) * sqrt({b}) * sqrt({a}) * sqrt({b})) - {a * b}") == "0"
    assert calculate(f"floor(sqrt({a * a + 1}))") == str(a)
