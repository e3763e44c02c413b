"""Evaluate an arithmetic expression exactly, within limits; nothing in it is ever run as a program."""

from __future__ import annotations

from dataclasses import replace
from decimal import Overflow, Underflow
from fractions import Fraction

from wayline.tool_registry.calculation.exact_numbers import (
    TOO_LARGE,
    CannotCompute,
    Number,
    add,
    bounded,
    divide,
    floor_divide,
    multiply,
    negative,
    remainder,
    subtract,
)
from wayline.tool_registry.calculation.expression_tokens import END, NO_COMMAS, Token, is_per_cent, tokens
from wayline.tool_registry.calculation.functions import CONSTANTS, FUNCTIONS
from wayline.tool_registry.calculation.number_text import shown
from wayline.tool_registry.calculation.powers import power

EXPRESSION_CHARS_MAX = 2_000
DEPTH_MAX = 50
DIGITS_MAX = 400
"""Of one number in an expression."""
_BINARY = {"*": multiply, "of": multiply, "/": divide, "//": floor_divide, "%": remainder, "mod": remainder}
"""Operators that bind as a product does."""


def calculate(expression: str) -> str:
    """Return the value of an expression as text. Raises CannotCompute, saying what to write instead."""
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise CannotCompute(f"the expression is longer than {EXPRESSION_CHARS_MAX} characters: compute it in parts")
    try:
        return shown(_Parser(tokens(expression)).value())
    except ZeroDivisionError:
        raise CannotCompute("this divides by zero") from None
    except (OverflowError, Overflow, Underflow):
        raise CannotCompute(TOO_LARGE) from None


class _Parser:
    """Reads and computes at once: each operator binds as in mathematics."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._next = 0
        self._depth = 0

    def value(self) -> Number:
        """Return the value of the whole expression. Raises CannotCompute and ZeroDivisionError."""
        if not self._tokens:
            raise CannotCompute("the expression is empty: write one such as (3 + 4) * 2")
        value = self._sum()
        if self._peek() is not END:
            raise CannotCompute(self._unexpected("an operator"))
        return value

    def _peek(self) -> Token:
        return self._tokens[self._next] if self._next < len(self._tokens) else END

    def _take(self, *signs: str) -> str | None:
        token = self._peek()
        if token.kind == "end" or token.text not in signs or token.kind == "number":
            return None
        self._next += 1
        return token.text

    def _unexpected(self, wanted: str) -> str:
        token = self._peek()
        if token is END:
            return f"the expression ends where {wanted} is expected"
        return f"{token.text!r} at character {token.begin + 1} stands where {wanted} is expected"

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
            percent = left.percent and right.percent
            left = replace(add(left, right) if sign == "+" else subtract(left, right), percent=percent)
        self._depth -= 1
        return left

    def _product(self) -> Number:
        left = self._signed()
        while True:
            token = self._peek()
            if token.kind == "number" or token.text not in _BINARY:
                return left
            self._next += 1
            left = replace(_BINARY[token.text](left, self._signed()), percent=False)

    def _signed(self) -> Number:
        below_zero = False
        while sign := self._take("+", "-"):
            below_zero ^= sign == "-"
        number = self._power()
        return negative(number) if below_zero else number

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
            elif self._peek().text == "%" and is_per_cent(self._tokens, self._next):
                self._next += 1
                number = replace(divide(number, Number(Fraction(100))), percent=True)
            else:
                return number

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
                advice = f"; {NO_COMMAS}" if self._peek().text == "," else ""
                raise CannotCompute(self._unexpected("')'") + advice)
            return inner
        raise CannotCompute(self._unexpected("a number"))

    def _named(self, token: Token) -> Number:
        name = token.text.lower()
        if self._take("(") is None:
            if name in CONSTANTS:
                return CONSTANTS[name]
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


def _literal(text: str) -> Number:
    digits = text.replace("_", "")
    if len(digits) > DIGITS_MAX:
        raise CannotCompute(f"a number with more than {DIGITS_MAX} digits is too long")
    return bounded(Number(Fraction(digits if not digits.endswith(".") else f"{digits}0")))
