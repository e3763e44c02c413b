"""Amounts of money in sentences."""

from decimal import Decimal

import pytest

from wayline.contracts.money import dollars


@pytest.mark.parametrize(("amount", "said"), [("0.0300", "$0.03"), ("12", "$12"), ("-0.50", "-$0.5"), ("1E+2", "$100")])
def test_an_amount_is_said_without_zeros_at_its_end(amount: str, said: str):
    assert dollars(Decimal(amount)) == said
