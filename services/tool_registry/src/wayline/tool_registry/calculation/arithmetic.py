"""Evaluate an arithmetic expression exactly, within limits; nothing in it is ever run as a program."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, Overflow
from fractions import Fraction

from wayline.tool_registry.calculation.exact_numbers import TOO_LARGE, CannotCompute, Number, bounded, power
from wayline.tool_registry.calculation.functions import CONSTANTS, FUNCTIONS

EXPRESSION_CHARS_MAX = 2_000
DEPTH_MAX = 50
DIGITS_MAX = 400
"""Of one number in an expression."""
SHOWN_DIGITS = 20
"""Of a result that is rounded: more are shown only of what is exact."""
EXACT_DIGITS_MAX = 60
FRACTION_CHARS_MAX = 40

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d{1,4})?)"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|//|[-+*/%^!(),\u00d7\u00f7\u00b7\u2212]))"
)
_SAME = {"\u00d7": "*", "\u00b7": "*", "\u00f7": "/", "\u2212": "-", "^": "**"}
"""Signs as they are printed, and how they are typed."""
_BEGINS_AN_OPERAND = ("number", "name")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


_END = _Token("end", "", 0)


def calculate(expression: str) -> str:
    """Return the value of an expression as text. Raises CannotCompute, saying what to write instead."""
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise CannotCompute(f"the expression is longer than {EXPRESSION_CHARS_MAX} characters: compute it in parts")
    try:
        return shown(_Parser(list(_tokens(expression))).value())
    except ZeroDivisionError:
        raise CannotCompute("this divides by zero") from None
    except (OverflowError, Overflow):
        raise CannotCompute(TOO_LARGE) from None


def shown(number: Number) -> str:
    """Write a number: whole where it is exact and short enough, else rounded, and then saying so."""
    value = number.value
    if value.denominator == 1 and number.exact:
        return str(value.numerator)
    rounded = Context(prec=SHOWN_DIGITS, rounding=ROUND_HALF_EVEN, Emax=99_999, Emin=-99_999)
    if not number.exact:
        return f"about {_plain(Context(prec=15).create_decimal(_decimal(value, rounded)))}"
    wide = Context(prec=EXACT_DIGITS_MAX, Emax=99_999, Emin=-99_999)
    decimal = _decimal(value, wide)
    if Fraction(decimal) == value:
        return _plain(decimal)
    ratio = f"{value.numerator}/{value.denominator}"
    exactly = f" (exactly {ratio})" if len(ratio) <= FRACTION_CHARS_MAX else ""
    return f"about {_plain(_decimal(value, rounded))}{exactly}"


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _plain(number: Decimal) -> str:
    number = number.normalize(Context(prec=EXACT_DIGITS_MAX))
    return f"{number:f}" if -12 < number.adjusted() < 40 else f"{number:E}"


def _tokens(expression: str) -> Iterator[_Token]:
    at, text = 0, expression.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            rest = text[at:].lstrip()
            raise CannotCompute(
                f"{rest[:20]!r} is no part of an expression: numbers, + - * / // % ^ ! ( ) and functions"
            )
        kind = str(found.lastgroup)
        word = found[kind]
        yield _Token(kind, _SAME.get(word, word), found.start(kind))
        at = found.end()


class _Parser:
    """Reads and computes at once: each operator binds as in mathematics."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def value(self) -> Number:
        if not self._tokens:
            raise CannotCompute("the expression is empty: write one such as (3 + 4) * 2")
        value = self._sum()
        if self._peek() is not _END:
            raise CannotCompute(self._unexpected("an operator"))
        return value

    def _peek(self) -> _Token:
        return self._tokens[self._next] if self._next < len(self._tokens) else _END

    def _take(self, *signs: str) -> str | None:
        token = self._peek()
        if token.kind == "end" or token.text not in signs or token.kind == "number":
            return None
        self._next += 1
        return token.text

    def _unexpected(self, wanted: str) -> str:
        token = self._peek()
        if token is _END:
            return f"the expression ends where {wanted} is expected"
        return f"{token.text!r} at character {token.at + 1} stands where {wanted} is expected"

    def _sum(self) -> Number:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise CannotCompute(f"brackets are nested deeper than {DEPTH_MAX}: compute it in parts")
        left = self._product()
        while sign := self._take("+", "-"):
            right = self._product()
            # Of 1 both readings are the same.
            if right.percent and not left.percent and left.value != 1:
                raise CannotCompute(
                    f"'x {sign} y%' has two readings: write 'x * (1 {sign} y%)' to change x by y per cent of it, "
                    f"or 'x {sign} y/100'"
                )
            result = left.value + right.value if sign == "+" else left.value - right.value
            left = bounded(Number(result, exact=left.exact and right.exact, percent=left.percent and right.percent))
        self._depth -= 1
        return left

    def _product(self) -> Number:
        left = self._signed()
        while True:
            token = self._peek()
            if token.kind == "name" and token.text in ("of", "mod"):
                self._next += 1
                sign = "*" if token.text == "of" else "%"
            elif (taken := self._take("*", "/", "//", "%")) is not None:
                sign = taken
            else:
                return left
            left = _multiplied(sign, left, self._signed())

    def _signed(self) -> Number:
        negative = False
        while sign := self._take("+", "-"):
            negative ^= sign == "-"
        number = self._power()
        return Number(-number.value, exact=number.exact, percent=number.percent) if negative else number

    def _power(self) -> Number:
        base = self._postfixed()
        if self._take("**") is None:
            return base
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise CannotCompute(f"powers are nested deeper than {DEPTH_MAX}: compute it in parts")
        exponent = self._signed()
        self._depth -= 1
        return power(base, exponent)

    def _postfixed(self) -> Number:
        number = self._operand()
        while True:
            if self._take("!"):
                number = FUNCTIONS["factorial"]([number])
            elif self._peek().text == "%" and not self._operand_follows():
                self._next += 1
                number = Number(number.value / 100, exact=number.exact, percent=True)
            else:
                return number

    def _operand_follows(self) -> bool:
        """Return whether `%` stands between two operands, where it is the remainder; else it is per cent."""
        if self._next + 1 >= len(self._tokens):
            return False
        token = self._tokens[self._next + 1]
        return token.text == "(" or (token.kind in _BEGINS_AN_OPERAND and token.text not in ("of", "mod"))

    def _operand(self) -> Number:
        token = self._peek()
        if token.kind == "number":
            self._next += 1
            return _literal(token.text)
        if token.kind == "name":
            self._next += 1
            return self._named(token)
        if self._take("("):
            inner = self._sum()
            if self._take(")") is None:
                grouped = self._peek().text == ","
                advice = "; write thousands without commas" if grouped else ""
                raise CannotCompute(self._unexpected("')'") + advice)
            return Number(inner.value, exact=inner.exact)
        raise CannotCompute(self._unexpected("a number"))

    def _named(self, token: _Token) -> Number:
        name = token.text.lower()
        if self._take("(") is None:
            if name in CONSTANTS:
                return Number(CONSTANTS[name], exact=False)
            if name in FUNCTIONS:
                raise CannotCompute(f"the function {name} needs brackets: {name}(…)")
            raise CannotCompute(f"{token.text!r} is not known: there are {', '.join(CONSTANTS)} and functions")
        if name not in FUNCTIONS:
            raise CannotCompute(f"there is no function {token.text!r}: there are {', '.join(sorted(FUNCTIONS))}")
        arguments: list[Number] = []
        if self._take(")") is None:
            arguments.append(self._sum())
            while self._take(","):
                arguments.append(self._sum())
            if self._take(")") is None:
                raise CannotCompute(self._unexpected("',' or ')'"))
        return bounded(FUNCTIONS[name](arguments))


def _multiplied(sign: str, left: Number, right: Number) -> Number:
    exact = left.exact and right.exact
    match sign:
        case "*":
            value = left.value * right.value
        case "/":
            value = left.value / right.value
        case "//":
            value = Fraction(math.floor(left.value / right.value))
        case _:
            value = left.value - right.value * math.floor(left.value / right.value)
    return bounded(Number(value, exact=exact))


def _literal(text: str) -> Number:
    digits = text.replace("_", "")
    if len(digits) > DIGITS_MAX:
        raise CannotCompute(f"a number with more than {DIGITS_MAX} digits is too long")
    return bounded(Number(Fraction(digits if not digits.endswith(".") else f"{digits}0")))
