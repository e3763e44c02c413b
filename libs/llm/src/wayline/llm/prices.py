"""What a call costs: known, zero by declaration, or unknown. Never a guess."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.models import ModelCard, Prices, Rates
from wayline.contracts.money import Usage, usd

LOCAL = frozenset({"offline"})
"""Providers that run on our own machine and cost nothing per token."""


def cost(card: ModelCard, usage: Usage) -> Decimal | None:
    """Dollars for a call's usage, rounded once; None when nobody has said what the model costs."""
    if card.provider in LOCAL:
        return Decimal(0)
    if card.prices is None:
        return None
    rates = _rates(card.prices, usage.input)
    parts = (
        (usage.input - usage.cache_read - usage.cache_write_5m - usage.cache_write_1h, rates.input),
        (usage.cache_read, rates.cache_read),
        (usage.cache_write_5m, rates.cache_write_5m),
        (usage.cache_write_1h, rates.cache_write_1h),
        (usage.output, rates.output),
    )
    dollars = sum((n * (rates.input if rate is None else rate) for n, rate in parts), Decimal(0))
    return usd(dollars / 1_000_000)


def saved(card: ModelCard, usage: Usage) -> Decimal | None:
    """What the provider's cache took off a call's cost, or put on it where writing cost more than reading saved."""
    uncached = Usage(input=usage.input, output=usage.output, reasoning=usage.reasoning)
    without, paid = cost(card, uncached), cost(card, usage)
    return None if without is None or paid is None else without - paid


def _rates(prices: Prices, input_tokens: int) -> Rates:
    rates = prices.rates
    for step in prices.above:
        if input_tokens > step.tokens:
            rates = step.rates
    return rates
