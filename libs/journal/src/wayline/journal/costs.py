"""What a job's money went into: small sums that the fold carries along."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from wayline.contracts.events import Bounds
from wayline.contracts.money import JobCosts

_NOTHING = Decimal(0)


def plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """Add two amounts; one unknown makes the sum unknown."""
    return None if one is None or other is None else one + other


def spent(
    costs: JobCosts,
    kind: Literal["model", "tool", "aux"],
    name: str,
    usd: Decimal | None,
    *,
    saved_usd: Decimal | None = None,
) -> JobCosts:
    """Return the costs with one more call, and what a prompt cache saved of it, or cost where that is below zero."""
    changes: dict[str, Any] = {}
    before: dict[str, Decimal | None] = getattr(costs, kind)
    known = before.get(name, _NOTHING)
    # What is unknown stays so, whatever is added.
    if known is not None:
        changes[kind] = {**before, name: plus(known, usd)}
    if saved_usd and saved_usd > 0:
        changes["saved_usd"] = costs.saved_usd + saved_usd
    elif saved_usd:
        changes["lost_usd"] = costs.lost_usd - saved_usd
    return costs.model_copy(update=changes) if changes else costs


def unsettled(costs: JobCosts, bounds: Bounds) -> JobCosts:
    """Return the costs with a call whose usage never arrived."""
    return costs.model_copy(
        update={
            "unsettled_calls": costs.unsettled_calls + 1,
            "unsettled_lower_usd": costs.unsettled_lower_usd + (bounds.lower_usd or _NOTHING),
            "unsettled_upper_usd": plus(costs.unsettled_upper_usd, bounds.upper_usd),
        }
    )
