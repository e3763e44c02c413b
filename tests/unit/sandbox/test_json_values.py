"""Values of a program as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from wayline.sandbox.json_values import LEFT_OUT, NotJson, argument_values, readable_value, same_json


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def doubling(times: int) -> list[Any]:
    value: list[Any] = [0]
    for _ in range(times):
        value = [value, value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({1, 2}, "of type set"),
        ({"a": [1, b"x"]}, r"x\.a\[1\] is 1 bytes, of type bytes"),
        ({1: 2}, "has the key 1: keys are texts"),
        (float("nan"), "is nan, of type float"),
        (float("inf"), "is inf"),
        (2**64, "of type int"),
        ("\ud800", "half of a surrogate pair"),
        (nested(100), "nested more than"),
        (circular(), "nested more than"),
        (doubling(40), "more than 2000 bytes"),
        ("x" * 3_000, "more than 2000 bytes"),
    ],
)
def test_an_argument_that_is_no_json_is_refused(value: Any, problem: str):
    with pytest.raises(NotJson, match=problem):
        argument_values({"x": value}, bytes_max=2_000)


def test_arguments_are_copied_as_json_has_them():
    given = {"a": (1, 2.5, None), "b": {"c": [True, "é"]}}

    assert argument_values(given, bytes_max=1_000) == {"a": [1, 2.5, None], "b": {"c": [True, "é"]}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b", "a"}, ["a", "b"]),
        ({1: (1, 2)}, {"1": [1, 2]}),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (Decimal("1.50"), "1.50"),
        (float("nan"), "nan"),
        (2**100, "1267650600228229401496703205376"),
        (2**4_000, "an integer of 4001 bits"),
        (b"abc", "3 bytes"),
        ("\ud800", "?"),
    ],
)
def test_what_has_no_form_in_json_becomes_text(value: Any, expected: Any):
    assert readable_value(value, bytes_max=1_000) == expected


@pytest.mark.parametrize(
    "value", [nested(100), circular(), doubling(40), "x" * 5_000, {str(n): n for n in range(5_000)}]
)
def test_what_is_too_large_is_left_out_and_named(value: Any):
    text = json.dumps(readable_value(value, bytes_max=1_000), ensure_ascii=False)

    assert len(text) < 5_000
    assert LEFT_OUT in text


def test_one_and_true_are_other_json():
    assert same_json({"a": 1, "b": [None]}, {"b": [None], "a": 1})
    assert not any(same_json(1, other) for other in (1.0, True, "1"))
