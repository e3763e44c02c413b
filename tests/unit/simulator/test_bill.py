"""The simulator's prices and arithmetic: figures worked out by hand from the providers' tables."""

from __future__ import annotations

from decimal import Decimal

import pytest

from wayline.contracts.money import Usage
from wayline.simulator import Facts, Rates, known
from wayline.simulator.bill import price

ALL = Usage(input=10_000, cache_read=4_000, cache_write_5m=2_000, cache_write_1h=1_000, output=500)
"""3,000 neither read nor written."""
NO_LONG = Usage(input=10_000, cache_read=4_000, cache_write_5m=2_000, output=500)
"""4,000 neither read nor written."""


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        ("claude-haiku-5-5", ALL, "0.001040000"),  # 300 + 40 + 250 + 200 + 250 millionths
        ("claude-sonnet-5-5", ALL, "0.020400000"),  # 6,000 + 400 + 5,000 + 4,000 + 5,000
        ("claude-opus-5-5", ALL, "0.040800000"),  # 12,000 + 800 + 10,000 + 8,000 + 10,000
        ("claude-fable-5-2", ALL, "0.080800000"),  # 24,000 + 800 + 20,000 + 16,000 + 20,000
        ("claude-haiku-4-5", ALL, "0.010400000"),  # 3,000 + 400 + 2,500 + 2,000 + 2,500
        ("gpt-6-luna", NO_LONG, "0.000940000"),  # 400 + 40 + 250 + 250
        ("gpt-6.1-terra", NO_LONG, "0.009200000"),  # 4,000 + 200 + 2,500 + 2,500
        ("gpt-6-sol", NO_LONG, "0.018800000"),  # 8,000 + 800 + 5,000 + 5,000
        ("gpt-6-astra", NO_LONG, "0.094000000"),  # 40,000 + 4,000 + 25,000 + 25,000
        ("local-chat", ALL, "0.000000000"),
    ],
)
def test_a_request_costs_its_table_price(model, usage, usd):
    assert f"{price(known()[model], usage):f}" == usd


@pytest.mark.parametrize(("tokens", "usd"), [(1, "0.000000000"), (3, "0.000000002"), (5, "0.000000002")])
def test_half_a_billionth_goes_to_the_even_one(tokens, usd):
    facts = Facts("m", "local", Rates(input=Decimal("0.0005")))

    assert f"{price(facts, Usage(input=tokens)):f}" == usd
