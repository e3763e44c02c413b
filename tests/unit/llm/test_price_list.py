"""The public price list in our terms: exactly, or not at all."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import Usage as ListUsage
from genai_prices.data import providers
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    Provider,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.contracts.models import ModelCard, Rates
from wayline.contracts.money import Usage, usd
from wayline.llm.price_list import find_in, find_prices, from_listed
from wayline.llm.prices import cost
from wayline.testkit.walks import examples

LISTED = [(provider, model) for provider in providers for model in provider.models]
SAYABLE = [(provider, model) for provider, model in LISTED if from_listed(model, source="")]
TWO_AHEAD = timezone(timedelta(hours=2))
CHAT = {"anthropic", "openai", "google", "groq", "mistral", "deepseek", "openrouter", "together", "x-ai", "azure"}


def d(amount: str) -> Decimal:
    return Decimal(amount)


def info(*prices: ConditionalPrice, **parts: Any) -> ModelInfo:
    return ModelInfo(id="m", match=ClauseEquals("m"), prices=list(prices) or ModelPrice(**parts))


def rates(**parts: Any) -> Rates:
    found = from_listed(info(**parts), source="")
    assert found is not None
    return found.rates


def test_a_one_hour_write_without_its_price_costs_any_writes_price():
    both = rates(input_mtok=d("1"), output_mtok=d("2"), cache_write_mtok=d("3"), cache_write_1h_mtok=d("4"))
    one = rates(input_mtok=d("1"), output_mtok=d("2"), cache_write_mtok=d("3"))

    assert (both.cache_write_5m, both.cache_write_1h) == (3, 4)
    assert (one.cache_write_5m, one.cache_write_1h, one.cache_read) == (3, 3, None)


def test_parts_with_steps_at_different_sizes_become_steps_of_the_whole():
    found = from_listed(
        info(
            input_mtok=TieredPrices(base=d("1"), tiers=[Tier(100, d("2"))]),
            output_mtok=TieredPrices(base=d("5"), tiers=[Tier(200, d("6"))]),
            cache_read_mtok=d("0.1"),
        ),
        source="",
    )

    assert found is not None
    assert found.rates == Rates(input=d("1"), output=d("5"), cache_read=d("0.1"))
    assert [(step.tokens, step.rates.input, step.rates.output) for step in found.above] == [(100, 2, 5), (200, 2, 6)]


def test_a_price_by_day_or_hour_keeps_its_time():
    found = from_listed(
        info(
            ConditionalPrice(prices=ModelPrice(input_mtok=d("1"))),
            ConditionalPrice(StartDateConstraint(date(2027, 1, 1)), prices=ModelPrice(input_mtok=d("2"))),
            ConditionalPrice(
                TimeOfDateConstraint(time(16), time(3, tzinfo=TWO_AHEAD)), prices=ModelPrice(input_mtok=d("3"))
            ),
        ),
        source="",
    )

    assert found is not None
    assert [(w.since, w.daily_from, w.daily_until, w.rates.input) for w in found.when] == [
        (date(2027, 1, 1), None, None, 2),
        (None, time(16), time(1), 3),
    ]


@pytest.mark.parametrize(
    "parts",
    [
        {"output_mtok": d("1")},
        {"input_mtok": d("1"), "requests_kcount": d("5")},
        {"input_mtok": d("1"), "output_mtok": d("1"), "output_reasoning_mtok": d("2")},
    ],
)
def test_a_price_our_model_cannot_express_is_unknown(parts: dict[str, Decimal]):
    assert from_listed(info(**parts), source="") is None


def test_what_we_never_ask_for_makes_no_price_unknown():
    assert rates(input_mtok=d("1"), input_audio_mtok=d("9"), web_searches_kcount=d("10")).input == 1


def test_nearly_every_chat_model_of_the_list_can_be_said():
    tokens = [
        (p.id, m.id) for p, m in LISTED if p.id in CHAT and isinstance(m.prices, ModelPrice) and m.prices.input_mtok
    ]
    sayable = {(p.id, m.id) for p, m in SAYABLE}

    assert len([name for name in tokens if name in sayable]) > 0.98 * len(tokens) > 500


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(SAYABLE), st.tuples(*[st.integers(0, 300_000)] * 4), st.integers(0, 100_000))
def test_our_arithmetic_is_the_lists_own(
    listed: tuple[Provider, ModelInfo], parts: tuple[int, int, int, int], output: int
):
    _, model = listed
    prices = from_listed(model, source="")
    always = model.prices if isinstance(model.prices, ModelPrice) else model.prices[0].prices
    _, read, short, long = parts
    theirs = always.calc_price(
        ListUsage(
            input_tokens=sum(parts),
            cache_read_tokens=read,
            cache_write_tokens=short + long,
            cache_write_5m_tokens=short,
            cache_write_1h_tokens=long,
            output_tokens=output,
        )
    )
    card = ModelCard(provider="p", model="m", tier="flash", prices=prices)
    ours = Usage(input=sum(parts), cache_read=read, cache_write_5m=short, cache_write_1h=long, output=output)

    assert cost(card, ours) == usd(theirs["input_price"] + theirs["output_price"])


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "gpt-6.2-sol"), ("ollama", "llama3"), ("chat", "gpt-6-sol"), ("my-openai", "gpt-6-sol")],
)
def test_a_name_merely_similar_to_a_listed_one_has_no_price(provider: str, model: str):
    assert find_prices(provider, model) is None


def test_a_price_names_where_it_is_from():
    found = find_in(providers, "google", "gemini-3.5-flash", source="list 1")

    assert found is not None and found.source == "list 1, google/gemini-3.5-flash"


@pytest.mark.slow
def test_the_catalogue_is_read_without_loading_the_list():
    script = (
        "import sys\n"
        "from wayline.llm.catalogue import bundled\n"
        "from wayline.llm.price_list import find_prices\n"
        "import wayline.router.app, wayline.executor.app\n"
        "assert bundled() and find_prices('anthropic', 'claude-haiku-5-5')\n"
        "print([name for name in sys.modules if name.startswith('genai_prices')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


FREE = {"input_mtok": d("0"), "output_mtok": d("0")}


def test_a_price_of_nothing_is_unknown():
    later = ConditionalPrice(constraint=StartDateConstraint(start_date=date(2027, 1, 1)), prices=ModelPrice(**FREE))
    paid = ConditionalPrice(prices=ModelPrice(input_mtok=d("1"), output_mtok=d("2")))

    assert from_listed(info(**FREE), source="") is None
    assert from_listed(info(paid, later), source="") is None


def test_an_embedding_whose_output_costs_nothing_has_a_price():
    assert rates(input_mtok=d("0.02")) == Rates(
        input=d("0.02"), output=d("0"), cache_read=None, cache_write_5m=None, cache_write_1h=None
    )
