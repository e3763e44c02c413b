"""An answer that cannot be sent as it is does not make a failure of a call that was made."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.bus_tools import BODY_MAX, InvokeResult
from wayline.sdk import Result
from wayline.sdk.answers import answer_of, encoded, failure

LONG = "x" * 800 * 1024


def received(answer: InvokeResult) -> InvokeResult:
    """Return what the registry reads of an answer."""
    return InvokeResult.model_validate_json(encoded(answer))


@pytest.mark.parametrize(
    "value",
    [LONG, "é" * 500 * 1024, "\x00" * 300 * 1024, "a" * 700 * 1024 + "\x00" * 300 * 1024, {"rows": [LONG]}, [LONG]],
    ids=["ascii", "wide", "escaped", "uneven", "object", "list"],
)
def test_an_answer_above_the_limit_is_a_cut_success(value: Any):
    body = encoded(answer_of(value))

    answer = InvokeResult.model_validate_json(body)
    assert BODY_MAX / 4 < len(body) <= BODY_MAX
    assert answer.error is None
    assert "The tool has run; its answer of" in answer.text


class Shy:
    def __repr__(self) -> str:
        raise ValueError("secret")


endless: list[Any] = []
endless.append(endless)


@pytest.mark.parametrize("value", [object(), [object()], {"a": Shy()}, endless], ids=["object", "list", "dict", "loop"])
def test_a_value_that_is_no_json_is_a_named_success(value: Any):
    answer = received(answer_of(value))

    assert answer.error is None
    assert answer.text.startswith("The tool did its work: do not repeat the call.")


@pytest.mark.parametrize(
    "result",
    [
        Result(text=LONG, cost_usd=Decimal("0.5")),
        Result(structured={"a": object()}, cost_usd=Decimal("0.5")),
        Result(text="\ud800", cost_usd=Decimal("0.5")),
        Result(error=LONG, cost_usd=Decimal("0.5")),
    ],
    ids=["long", "no json", "no text", "long error"],
)
def test_what_a_tool_charged_is_sent_whatever_its_answer_is(result: Result):
    answer = received(result)

    assert answer.cost_usd == Decimal("0.5")
    assert (answer.error is None) == (result.error is None)


def test_half_a_surrogate_pair_is_replaced():
    assert received(answer_of("paid \ud800")).text == "paid ?"
    assert received(answer_of({"paid": "\ud800"})).structured == {"paid": "?"}


@pytest.mark.parametrize(
    ("message", "error"),
    [("no order \ud800", "no order ?"), ("x" * 2**21, "x" * 8_000), ("", "the tool failed without saying why")],
    ids=["no text", "long", "empty"],
)
def test_a_failure_with_any_message_can_be_sent(message: str, error: str):
    assert received(failure(message)).error == error
