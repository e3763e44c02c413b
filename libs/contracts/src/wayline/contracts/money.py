"""Tokens and dollars. A cost is a Decimal in USD, rounded once, or None: unknown is never zero."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated

from pydantic import Field

from wayline.contracts.base import Frozen, Usd

NANO_USD = Decimal("1e-9")

Dollars = Annotated[Usd, Field(ge=0, le=1_000_000_000, decimal_places=9)]
"""An amount in a request, in USD; bounded, so that any sum of it is a number that Postgres and JSON take."""


def usd(amount: Decimal) -> Decimal:
    """Round to a billionth of a dollar, half to even: done once, where a cost is born."""
    return amount.quantize(NANO_USD, rounding=ROUND_HALF_EVEN)


def dollars(amount: Decimal) -> str:
    """Format an amount for a sentence, without the zeros at its end: `$0.03`."""
    return f"{'-' if amount < 0 else ''}${abs(amount).normalize():f}"


def cost_sum(costs: list[Decimal | None]) -> Decimal | None:
    """Add costs; one unknown makes the sum unknown."""
    known = [cost for cost in costs if cost is not None]
    return usd(sum(known, Decimal(0))) if len(known) == len(costs) else None


class JobCosts(Frozen):
    """What a job spent its money on. Each call is in one of `model`, `tool` and `aux`; together they are its cost."""

    model: dict[str, Usd | None] = Field(
        default_factory=dict, description="By `provider/model`, calls of the conversation; null: a price is unknown."
    )
    tool: dict[str, Usd | None] = Field(default_factory=dict, description="By tool, where it costs money.")
    aux: dict[str, Usd | None] = Field(
        default_factory=dict, description="By purpose: classification, compaction, embedding and the like."
    )
    saved_usd: Usd = Field(default=Decimal(0), description="What prompt caches saved, over calls where they did.")
    lost_usd: Usd = Field(default=Decimal(0), description="What writing to them cost in vain, over the others.")
    tool_tokens_saved: int = Field(
        default=0,
        description="Estimated tokens of definitions that its answered calls were spared by deferred tools; below zero "
        "where deferring cost more.",
    )
    unsettled_calls: int = Field(
        default=0, description="Calls that the provider may have billed, and whose usage never arrived."
    )
    unsettled_lower_usd: Usd = Decimal(0)
    unsettled_upper_usd: Usd | None = Field(default=Decimal(0), description="Null: a price is unknown.")


class Usage(Frozen):
    """Tokens of one or more model calls, normalised: `input` is the total and includes cache reads and writes."""

    input: int = Field(default=0, ge=0)
    cache_read: int = Field(default=0, ge=0)
    cache_write_5m: int = Field(default=0, ge=0)
    cache_write_1h: int = Field(default=0, ge=0)
    output: int = Field(default=0, ge=0)
    reasoning: int = Field(default=0, ge=0, description="Part of `output`, never added to it.")

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cache_read=self.cache_read + other.cache_read,
            cache_write_5m=self.cache_write_5m + other.cache_write_5m,
            cache_write_1h=self.cache_write_1h + other.cache_write_1h,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )

    def __sub__(self, other: Usage) -> Usage:
        """Return what is beyond an earlier count of the same calls."""
        return Usage(**{name: max(0, getattr(self, name) - getattr(other, name)) for name in Usage.model_fields})

    @property
    def total(self) -> int:
        """Return the tokens in and out together."""
        return self.input + self.output
