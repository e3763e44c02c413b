"""What a call costs: known, zero by declaration, or unknown. Never a guess."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from wayline.contracts.models import ModelCard, Prices, Rates, Tariff, TariffWhen
from wayline.contracts.money import Usage, usd

LOCAL = frozenset({"offline"})
"""Providers that run on our own machine and cost nothing per token."""

ZERO = Decimal(0)
MILLION = Decimal(1_000_000)


def is_known(card: ModelCard) -> bool:
    """Return whether anybody has said what a model costs."""
    return card.prices is not None or card.provider in LOCAL


def cost(card: ModelCard, usage: Usage, *, at: datetime | None = None) -> Decimal | None:
    """Return the dollars for a call's usage, rounded once; None when the model has no price.

    `at`: when the call was made, for prices that change; without it, what holds at no particular time.
    """
    if card.provider in LOCAL:
        return ZERO
    if card.prices is None:
        return None
    rates = _rates(tariff(card.prices, at), usage.input)
    read, short, long = usage.cache_read, usage.cache_write_5m, usage.cache_write_1h
    # A provider that counts more cached than it read would make the rest negative, and the call too cheap.
    plain = max(usage.input - read - short - long, 0)
    dollars = plain * rates.input + usage.output * rates.output
    if read:
        dollars += read * _or_input(rates.cache_read, rates)
    if short:
        dollars += short * _or_input(rates.cache_write_5m, rates)
    if long:
        dollars += long * _or_input(rates.cache_write_1h, rates)
    return usd(dollars / MILLION)


def saved(card: ModelCard, usage: Usage, *, at: datetime | None = None) -> Decimal | None:
    """Return how many dollars the cache saved; below zero where the call wrote more than it read.

    What was paid and what was saved add up to the price without a cache, to the last digit.
    """
    paid = cost(card, usage, at=at)
    if paid is None:
        return None
    without = cost(card, Usage(input=usage.input, output=usage.output), at=at)
    return None if without is None else without - paid


def worst(card: ModelCard, input_tokens: int, max_output_tokens: int, *, at: datetime | None = None) -> Decimal | None:
    """Return the most that one call can cost: no usage within these bounds costs more; None without a price."""
    if card.provider in LOCAL:
        return ZERO
    if card.prices is None:
        return None
    dollars = (prompt + max_output_tokens * rate for prompt, rate in _dearest_steps(card.prices, input_tokens, at))
    return usd(max(dollars) / MILLION)


def affordable_output(
    card: ModelCard, input_tokens: int, usd_max: Decimal, *, at: datetime | None = None
) -> int | None:
    """Return how many tokens a call may write so that `worst` is no more than `usd_max`; None: price unknown or zero.

    Zero or less where the prompt alone can cost as much.
    """
    if card.provider in LOCAL or card.prices is None:
        return None
    left = [
        int((usd_max * MILLION - prompt) // rate) if rate else 0
        for prompt, rate in _dearest_steps(card.prices, input_tokens, at)
        if rate or prompt > usd_max * MILLION
    ]
    return min(left, default=None)


def _dearest_steps(prices: Prices, input_tokens: int, at: datetime | None) -> list[tuple[Decimal, Decimal]]:
    """Return for each step of a tariff that a prompt may reach the most its input costs and the rate of its output."""
    held = tariff(prices, at)
    # Also the steps below the last one that it may reach: nothing says that longer requests cost more a token.
    steps = [(0, held.rates), *((step.tokens, step.rates) for step in held.above if step.tokens < input_tokens)]
    ends = [*(start for start, _ in steps[1:]), input_tokens]
    return [
        (min(end, input_tokens) * _dearest(rates), rates.output) for (_, rates), end in zip(steps, ends, strict=True)
    ]


def expected(
    card: ModelCard,
    *,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int = 0,
    written_tokens: int = 0,
) -> Decimal | None:
    """Return what a call of about this size costs: an estimate is priced by the same arithmetic as a bill."""
    usage = Usage(input=input_tokens, cache_read=cached_tokens, cache_write_5m=written_tokens, output=output_tokens)
    return cost(card, usage)


def tariff(prices: Prices, at: datetime | None) -> Tariff:
    """Return the rates in force at a moment."""
    if at is None or not prices.when:
        return prices
    return next((held for held in reversed(prices.when) if _applies(held, at)), prices)


def prices_at(prices: Prices, at: datetime) -> Prices:
    """Return the prices in force at a moment with their later changes, without what is past."""
    passed = [n for n, held in enumerate(prices.when) if held.daily_from is None and _applies(held, at)]
    if not passed:
        return prices
    held, later = prices.when[passed[-1]], prices.when[passed[-1] + 1 :]
    return prices.model_copy(update={"rates": held.rates, "above": held.above, "when": later})


def _applies(held: TariffWhen, at: datetime) -> bool:
    at = at.astimezone(UTC)
    if held.since is not None and at.date() < held.since:
        return False
    if held.daily_from is None or held.daily_until is None:
        return True
    now, begins, ends = at.time(), held.daily_from, held.daily_until
    return begins <= now < ends if begins <= ends else now >= begins or now < ends


def _rates(held: Tariff, input_tokens: int) -> Rates:
    rates = held.rates
    for step in held.above:
        if input_tokens > step.tokens:
            rates = step.rates
    return rates


def _or_input(rate: Decimal | None, rates: Rates) -> Decimal:
    return rates.input if rate is None else rate


def _dearest(rates: Rates) -> Decimal:
    told = (rates.input, rates.cache_read, rates.cache_write_5m, rates.cache_write_1h)
    return max(rate for rate in told if rate is not None)
