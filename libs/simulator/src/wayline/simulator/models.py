"""What the simulated providers know about their models: data in models.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib import resources
from typing import Any, Literal

Provider = Literal["anthropic", "openai", "google", "local"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars per million tokens."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cache_read: Decimal = Decimal(0)
    cache_write: Decimal = Decimal(0)
    """For the shorter of a provider's two lifetimes, or for both."""
    cache_write_long: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Facts:
    """One model as its provider knows it."""

    name: str
    provider: Provider
    rates: Rates
    above_tokens: int | None = None
    """More prompt tokens than this, and the whole request costs `rates_above`."""
    rates_above: Rates = Rates()
    window: int = 128_000
    output_limit: int = 8_192
    cache_min_tokens: int = 1_024
    bound_thinking: bool = False
    always_thinks: bool = False
    reasons: bool = True
    """OpenAI's: a model that does not refuses every parameter of reasoning."""
    forced_tools: bool = False
    system_messages: bool = False
    prefill: bool = False
    image_tokens_max: int = 4_784
    """A larger image is made smaller, and counts so many."""
    pages_max: int = 600
    """Of PDFs in one request."""
    effort: bool = True
    dimensions: int | None = None
    """An embedding model's; None: it answers."""


def known() -> dict[str, Facts]:
    """Return the models of the table, by name."""
    table = tomllib.loads(resources.files(__name__.rpartition(".")[0]).joinpath("models.toml").read_text())
    return {name: _facts(name, row) for name, row in table.items()}


def _facts(name: str, row: Mapping[str, Any]) -> Facts:
    rest = {key: value for key, value in row.items() if key not in ("prices", "above")}
    above = row.get("above")
    return Facts(
        name=name,
        rates=_rates(row["prices"]),
        above_tokens=above["tokens"] if above else None,
        rates_above=_rates(above["prices"]) if above else Rates(),
        **rest,
    )


def _rates(prices: Mapping[str, str]) -> Rates:
    return Rates(**{name: Decimal(price) for name, price in prices.items()})
