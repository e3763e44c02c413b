"""What a call costs: known, zero by declaration, or unknown. Never a guess."""

from __future__ import annotations

from decimal import Decimal

from wayline.contracts.money import Usage, usd

LOCAL = frozenset({"offline"})
"""Providers that run on our own machine and cost nothing per token."""


def price(provider: str, usage: Usage, per_mtok: dict[str, Decimal] | None = None) -> Decimal | None:
    """Dollars for a call's usage; None when nobody has said what this model costs.

    `per_mtok` holds dollars per million tokens: `input`, `output`, and `cache_read` where it differs from `input`.
    """
    if provider in LOCAL:
        return Decimal(0)
    if per_mtok is None:
        return None
    fresh = usage.input - usage.cache_read
    total = (
        fresh * per_mtok["input"]
        + usage.cache_read * per_mtok.get("cache_read", per_mtok["input"])
        + usage.output * per_mtok["output"]
    )
    return usd(total / 1_000_000)
