"""The calculator: exact where it can be, bounded always, and clear about what it does not take."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.testkit.walks import examples
from wayline.tool_registry.calculation.arithmetic import calculate
from wayline.tool_registry.calculation.exact_numbers import CannotCompute

RIGHT = {
    "1 + 2 * 3": "7",
    "(1 + 2) * 3": "9",
    "0.1 + 0.2": "0.3",
    "2^10": "1024",
    "2**3**2": "512",
    "-2^2": "-4",
    "2^-2": "0.25",
    "(-2)^3": "-8",
    "--3": "3",
    "1e3 + 1_000": "2000",
    "7 // 2": "3",
    "-7 // 2": "-4",
    "7 % 3": "1",
    "-7 mod 3": "2",
    "15% of 80": "12",
    "15% * 80": "12",
    "200 * (1 + 15%)": "230",
    "5% + 3%": "0.08",
    "50%": "0.5",
    "5!": "120",
    "3 \u00d7 4 \u00f7 2 \u2212 1": "5",
    "1/3": "about 0.33333333333333333333 (exactly 1/3)",
    "1/3 * 3": "1",
    "22/7": "about 3.1428571428571428571 (exactly 22/7)",
    "1/2^20": "0.00000095367431640625",
    "123456789 * 987654321": "121932631112635269",
    "sqrt(2)": "about 1.4142135623731",
    "sqrt(16/9) * 3": "4",
    "2^0.5": "about 1.4142135623731",
    "(-8)^2": "64",
    "cbrt(-27)": "-3",
    "ln(e)": "about 1",
    "log10(1000)": "3",
    "log(8, 2)": "3",
    "log2(10)": "about 3.32192809488736",
    "exp(1)": "about 2.71828182845905",
    "round(2.5)": "3",
    "round(-2.5)": "-3",
    "round(2/3, 2)": "0.67",
    "round(1234, -2)": "1200",
    "round(sqrt(2), 3)": "1.414",
    "floor(-1.5)": "-2",
    "ceil(1.2)": "2",
    "trunc(-1.9)": "-1",
    "max(1, 7, 3) - min(1, 7, 3)": "6",
    "sum(1, 2, 3)": "6",
    "mean(1, 2, 4)": "about 2.3333333333333333333 (exactly 7/3)",
    "median(4, 1, 3, 2)": "2.5",
    "variance(1, 2, 3, 4)": "about 1.6666666666666666667 (exactly 5/3)",
    "stdev(2, 4)": "about 1.4142135623731",
    "percent_change(80, 92)": "15",
    "gcd(12, 18)": "6",
    "lcm(4, 6)": "12",
    "comb(5, 2)": "10",
    "perm(5, 2)": "20",
    "sin(pi/6)": "about 0.5",
    "degrees(pi)": "about 180",
    "hypot(3, 4)": "5",
    "1000 * (1 + 5%/12)^360": "about 4467.7443140061322124",
    "1.0123456^1000": "about 213206.091585613",
    "0^0": "1",
    "0^2": "0",
    "factorial(20)": "2432902008176640000",
}
WRONG = {
    "": "empty",
    "1 +": "ends where a number",
    "(1 + 2": "'\\)'",
    "1 2": "operator",
    "1,000 + 1": "without commas",
    "(1,000)": "thousands without commas",
    "200 + 15%": "two readings",
    "1/0": "by zero",
    "1 % 0": "by zero",
    "0^-1": "by zero",
    "foo(1)": "no function 'foo'",
    "x + 1": "'x' is not known",
    "sqrt": "needs brackets",
    "sqrt(-1)": "real square root",
    "(-8)^(1/3)": "real power",
    "ln(0)": "above zero",
    "log(100)": "needs its base",
    "factorial(5000)": "up to 1000",
    "factorial(1.5)": "whole numbers",
    "sqrt(1, 2)": "takes 1 argument, not 2",
    "mean()": "at least 1",
    "asin(2)": "not defined",
    "9^9^9": "digits",
    "10^4000": "digits",
    "2^100000": "digits",
    "exp(10000)": "between",
    "__import__('os')": "no function|no part",
    "().__class__": "no part",
    "1 if 2 else 3": "operator",
    "[1, 2]": "no part",
    "'a' * 3": "no part",
    "1 = 1": "no part",
    "(" * 60 + "1" + ")" * 60: "nested",
    "^".join(["2"] * 60): "nested|digits",
    "9" * 500: "too long",
    "1+" * 1500 + "1": "longer than",
}


@pytest.mark.parametrize("expression", RIGHT)
def test_an_expression_has_its_value(expression: str):
    assert calculate(expression) == RIGHT[expression]


@pytest.mark.parametrize("expression", WRONG, ids=lambda text: text[:20] or "empty")
def test_a_wrong_expression_is_answered_with_what_to_write(expression: str):
    with pytest.raises(CannotCompute, match=WRONG[expression]):
        calculate(expression)


@settings(max_examples=examples(300), deadline=None)
@given(st.text("0123456789.+-*/%^!() ,esqrtlnpi", max_size=60))
def test_whatever_is_written_gets_a_value_or_a_reason(expression: str):
    try:
        assert calculate(expression)
    except CannotCompute as error:
        assert str(error)


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**9))
def test_fractions_are_exact_however_long_the_way(a: int, b: int):
    assert calculate(f"({a} / {b}) * {b}") == str(a)


def test_a_chain_of_costly_steps_stays_within_its_limits():
    chain = "+".join(f"1/{n}" for n in range(1, 300))

    assert calculate(chain).startswith("about 6.2793305469661701")
    assert calculate("*".join(["factorial(300)"] * 5)).isdecimal()


@pytest.mark.parametrize(
    "expression", ["10 % -3", "-7 % -3", "7 % +3", "10%-3", "10 % - 3", "50%(2)", "15% (80)", "15% 80", "50% sqrt(4)"]
)
def test_a_per_cent_sign_with_two_readings_is_refused(expression: str):
    with pytest.raises(CannotCompute, match="'x mod \\(y\\)' for the remainder"):
        calculate(expression)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("17 % 5", "2"),
        ("17%5", "2"),
        ("17 % (2 + 3)", "2"),
        ("10 mod (-3)", "-2"),
        ("80 * 15% + 20", "32"),
        ("20%-5%", "0.15"),
        ("5 % + 3 %", "0.08"),
        ("(15%) + 1", "1.15"),
        ("15% of (80)", "12"),
    ],
)
def test_a_per_cent_sign_with_one_reading_has_it(expression: str, value: str):
    assert calculate(expression) == value


@pytest.mark.parametrize("expression", ["100 + (10%)", "200 - ((15%))", "200 + (5% + 3%)"])
def test_per_cent_in_brackets_has_two_readings_too(expression: str):
    with pytest.raises(CannotCompute, match="two readings"):
        calculate(expression)


@pytest.mark.parametrize(
    "expression", ["sum(1,000, 2,500)", "max(1,500, 1,200)", "mean(1,000,000, 2)", "sum(1,000.50, 2)", "min(120,360)"]
)
def test_thousands_set_apart_by_commas_are_refused(expression: str):
    with pytest.raises(CannotCompute, match="without commas"):
        calculate(expression)


def test_arguments_of_three_digits_are_taken_behind_spaces():
    assert calculate("sum(120, 360,1,2)") == "483"
    assert calculate("max(1500,200)") == "1500"
