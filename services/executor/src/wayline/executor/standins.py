"""A place held for `wayline.llm.prices.worst`."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.models import ModelCard
from wayline.contracts.money import usd


def worst(card: ModelCard, input_tokens: int, max_output_tokens: int) -> Decimal | None:
    """The most a call can cost."""
    if card.prices is None:
        return None
    rates = [card.prices.rates, *(step.rates for step in card.prices.above)]
    read = max(
        rate for r in rates for rate in (r.input, r.cache_read, r.cache_write_5m, r.cache_write_1h) if rate is not None
    )
    written = max(r.output for r in rates)
    return usd((read * input_tokens + written * max_output_tokens) / 1_000_000)
