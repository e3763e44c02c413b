"""The bar of a budget: how much of its limit is spent, held and not settled. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

BAR_UNITS: Final = 1_000
"""Of a limit, across its bar."""


def used_of(budget: dict[str, Any]) -> dict[str, int]:
    """Return the parts of a budget's bar: spent, held and not settled, in units of its limit."""
    limit = Decimal(budget["limit_usd"])
    room, parts = BAR_UNITS, dict[str, int]()
    for name in ("spent_usd", "reserved_usd", "unsettled_usd"):
        share = round(Decimal(budget[name]) / limit * BAR_UNITS) if limit else 0
        parts[name] = min(share, room)
        room -= parts[name]
    return parts
