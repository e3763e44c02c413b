"""What the provider charges: written by the simulator alone, with prices and arithmetic of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Literal

from wayline.contracts.money import Usage
from wayline.simulator.models import Facts
from wayline.simulator.scripts.script import Wire

Outcome = Literal["answered", "refused", "cut", "aborted", "failed"]
"""`cut`: broken off here; `aborted`: the client went away; `failed`: an error event ended the stream."""

MILLION = Decimal(1_000_000)
NANO = Decimal("0.000000001")


@dataclass(frozen=True)
class Charge:
    """One request on the bill. A request that never began to be answered costs nothing."""

    number: int
    attempt: str
    wire: Wire
    provider: str
    model: str
    usage: Usage
    """What is charged for; of a broken-off answer, its input and the words that were written or on their way."""
    usd: Decimal
    outcome: Outcome
    usage_delivered: bool
    """Whether the client was sent the final usage."""
    status: int = 200


@dataclass
class Bill:
    """Every request in the order it came in; complete for those that have ended."""

    _charges: dict[int, Charge] = field(default_factory=dict)

    def add(self, charge: Charge) -> None:
        self._charges[charge.number] = charge

    @property
    def charges(self) -> list[Charge]:
        return [self._charges[number] for number in sorted(self._charges)]

    @property
    def usd(self) -> Decimal:
        return sum((charge.usd for charge in self._charges.values()), Decimal(0))

    @property
    def by_attempt(self) -> dict[str, list[Charge]]:
        found: dict[str, list[Charge]] = {}
        for charge in self.charges:
            found.setdefault(charge.attempt, []).append(charge)
        return found


def price(facts: Facts, usage: Usage) -> Decimal:
    """Return the dollars, rounded once to a billionth."""
    above = facts.above_tokens is not None and usage.input > facts.above_tokens
    rates = facts.rates_above if above else facts.rates
    plain = usage.input - usage.cache_read - usage.cache_write_5m - usage.cache_write_1h
    dollars = (
        plain * rates.input
        + usage.cache_read * rates.cache_read
        + usage.cache_write_5m * rates.cache_write
        + usage.cache_write_1h * rates.cache_write_long
        + usage.output * rates.output
    )
    return (dollars / MILLION).quantize(NANO, rounding=ROUND_HALF_EVEN)
