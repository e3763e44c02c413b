"""What a call costs, to the last digit, and what it can cost at most."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.models import ModelCard, Prices, Rates, RatesAbove, TariffWhen
from wayline.contracts.money import Usage
from wayline.llm.catalogue import bundled
from wayline.llm.prices import affordable_output, cost, expected, prices_at, saved, worst

CARDS = {card.name: card for card in bundled()}
HAIKU, SONNET = CARDS["anthropic/claude-haiku-5-5"], CARDS["anthropic/claude-sonnet-5-5"]
LUNA = CARDS["openai/gpt-6-luna"]
UNKNOWN = ModelCard(provider="openai", model="nobody-knows", tier="premium")
PRICED = [card for card in bundled() if card.prices]


def usd(amount: str) -> Decimal:
    return Decimal(amount)


def priced(input: str, output: str = "0", **more: object) -> ModelCard:
    rates = Rates(input=usd(input), output=usd(output))
    return ModelCard(provider="p", model="m", tier="flash", prices=Prices(rates=rates, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("card", "usage", "dollars"),
    [
        # 600 x 2.50 + 400 x 4.00 + 2,000 x .10 = 3,300; and 17 of answer at 10.00
        (SONNET, Usage(input=3_000, cache_read=2_000, cache_write_5m=600, cache_write_1h=400, output=17), "0.00347"),
        # What was read from the cache counts for the step, and then costs the step's own rate, as all of the request.
        (HAIKU, Usage(input=100_000, cache_read=50_000, output=1_000), "0.006"),
        (HAIKU, Usage(input=100_001, cache_read=50_000, output=1_000), "0.0300005"),
        (HAIKU, Usage(input=100_001, cache_read=100_000, output=100), "0.0052505"),
        (LUNA, Usage(input=272_000, cache_read=200_000, output=1_000), "0.0097"),
        (LUNA, Usage(input=272_001, cache_read=200_000, output=1_000), "0.0191502"),
    ],
)
def test_a_call_costs_what_its_provider_bills(card: ModelCard, usage: Usage, dollars: str):
    assert cost(card, usage) == usd(dollars)


def test_reasoning_is_part_of_the_output_and_not_paid_twice():
    assert cost(SONNET, Usage(output=100, reasoning=90)) == cost(SONNET, Usage(output=100))


def test_a_cost_is_rounded_once_half_to_even():
    assert cost(priced("0.0005"), Usage(input=1)) == usd("0")
    assert cost(priced("0.0015"), Usage(input=1)) == usd("2e-9")
    assert cost(priced("0.0005", "0.0005"), Usage(input=1, output=1)) == usd("1e-9")


def test_an_unknown_price_is_none_and_a_local_model_costs_zero():
    usage = Usage(input=1_000, output=1_000)

    assert cost(UNKNOWN, usage) is saved(UNKNOWN, usage) is worst(UNKNOWN, 1, 1) is None
    assert expected(UNKNOWN, input_tokens=1, output_tokens=1) is None
    for card in (CARDS["offline/extractive"], ModelCard(provider="offline", model="other", tier="flash")):
        assert cost(card, usage) == worst(card, 1_000, 1_000) == saved(card, usage) == 0


def test_without_cache_rates_a_cached_token_costs_what_any_costs():
    assert cost(priced("1"), Usage(input=100, cache_read=50, cache_write_1h=50)) == usd("0.0001")


def test_more_cached_than_read_never_makes_a_call_cheaper():
    assert cost(SONNET, Usage(input=10, cache_read=100)) == usd("0.00001")


def test_cost_and_savings_add_up_and_cache_writes_save_negative_amounts():
    read = Usage(input=10_000, cache_read=9_000, output=5)
    wrote = Usage(input=10_000, cache_write_5m=9_000, output=5)

    assert saved(SONNET, read) == usd("0.0171")
    assert saved(SONNET, wrote) == usd("-0.0045")
    for usage in (read, wrote):
        paid, without = cost(SONNET, usage), cost(SONNET, Usage(input=10_000, output=5))
        assert paid is not None and paid + (saved(SONNET, usage) or 0) == without


def test_the_worst_case_uses_the_dearest_write_and_price_step():
    assert worst(SONNET, 1_000, 100) == usd("0.005")  # 1,000 x 4.00 + 100 x 10.00
    assert worst(HAIKU, 100_000, 0) == usd("0.02")
    assert worst(HAIKU, 100_001, 0) == usd("0.100001")


def test_a_cheaper_step_above_does_not_lower_the_worst_case():
    cheaper = RatesAbove(tokens=1_000, rates=Rates(input=usd("1"), output=usd("1")))

    assert worst(priced("10", "10", above=(cheaper,)), 1_500, 100) == usd("0.011")


@given(
    card=st.sampled_from(PRICED),
    parts=st.tuples(*[st.integers(0, 150_000)] * 4),
    room=st.integers(0, 1_000),
    output=st.integers(0, 128_000),
    more_output=st.integers(0, 1_000),
)
def test_no_usage_within_its_bounds_costs_more_than_the_worst_case(
    card: ModelCard, parts: tuple[int, int, int, int], room: int, output: int, more_output: int
):
    _, read, short, long = parts
    usage = Usage(
        input=sum(parts), cache_read=read, cache_write_5m=short, cache_write_1h=long, output=output, reasoning=output
    )
    paid, most = cost(card, usage), worst(card, sum(parts) + room, output + more_output)

    assert paid is not None and most is not None and paid <= most


@given(
    card=st.sampled_from([card for card in PRICED if card.provider != "offline"]),
    prompt=st.integers(0, 300_000),
    usd_max=st.decimals(min_value=0, max_value=2, places=9),
)
def test_affordable_output_is_the_most_whose_worst_case_fits(card: ModelCard, prompt: int, usd_max: Decimal):
    tokens = affordable_output(card, prompt, usd_max)

    assert tokens is not None
    if tokens <= 0:
        assert (worst(card, prompt, 1) or 0) > usd_max
    else:
        assert (worst(card, prompt, tokens) or 0) <= usd_max < (worst(card, prompt, tokens + 1) or 0)


def test_affordable_output_is_unknown_for_an_unknown_or_zero_price():
    assert affordable_output(priced("1", "0"), 1_000, usd("1")) is None
    assert affordable_output(priced("1").model_copy(update={"prices": None}), 0, usd("1")) is None


def test_an_estimate_is_priced_like_a_bill():
    assert expected(SONNET, input_tokens=3_000, output_tokens=17, cached_tokens=2_000, written_tokens=1_000) == cost(
        SONNET, Usage(input=3_000, cache_read=2_000, cache_write_5m=1_000, output=17)
    )


NEW_YEAR = TariffWhen(since=date(2027, 1, 1), rates=Rates(input=usd("2"), output=usd("0")))
NIGHT = TariffWhen(daily_from=time(16, 30), daily_until=time(0, 30), rates=Rates(input=usd("0.5"), output=usd("0")))
MILLION = Usage(input=1_000_000)


@pytest.mark.parametrize(
    ("at", "dollars"),
    [
        (None, "1"),
        (datetime(2026, 12, 31, 12, tzinfo=UTC), "1"),
        (datetime(2027, 1, 1, 12, tzinfo=UTC), "2"),
        (datetime(2026, 12, 31, 23, 59, tzinfo=UTC), "0.5"),
        (datetime(2027, 1, 1, 0, 29, tzinfo=UTC), "0.5"),
        (datetime(2027, 1, 1, 0, 30, tzinfo=UTC), "2"),
    ],
)
def test_a_changing_price_is_read_at_the_calls_time(at: datetime | None, dollars: str):
    assert cost(priced("1", when=(NEW_YEAR, NIGHT)), MILLION, at=at) == usd(dollars)


@pytest.mark.parametrize(("hour", "minute", "dollars"), [(7, 59, "1"), (8, 0, "3"), (9, 59, "3"), (10, 0, "1")])
def test_an_hourly_price_includes_its_start_and_excludes_its_end(hour: int, minute: int, dollars: str):
    peak = TariffWhen(daily_from=time(8), daily_until=time(10), rates=Rates(input=usd("3"), output=usd("0")))

    assert cost(priced("1", when=(peak,)), MILLION, at=datetime(2026, 5, 1, hour, minute, tzinfo=UTC)) == usd(dollars)


def test_what_is_past_becomes_what_holds_and_later_changes_stay():
    prices = Prices(rates=Rates(input=usd("1"), output=usd("0")), when=(NEW_YEAR, NIGHT))

    assert prices_at(prices, datetime(2026, 5, 1, tzinfo=UTC)) == prices
    after = prices_at(prices, datetime(2027, 5, 1, tzinfo=UTC))
    assert (after.rates, after.when) == (NEW_YEAR.rates, (NIGHT,))


def test_steps_that_come_in_another_order_are_sorted():
    low, high = (RatesAbove(tokens=n, rates=Rates(input=usd(str(n)), output=usd("0"))) for n in (10, 20))

    assert priced("1", above=(high, low)).prices.above == (low, high)  # type: ignore[union-attr]
