"""Recorded usage bodies through our normalisers, our mapping of a price list, and our arithmetic.

Each case is priced by one or more provider/flavour of that list. What each was expected to cost comes with the case.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from genai_prices.types import Provider, _providers_from_raw

from wayline.contracts.models import ModelCard
from wayline.contracts.money import NANO_USD, Usage
from wayline.llm import usage as normalisers
from wayline.llm.price_list import find_in
from wayline.llm.prices import cost

from ..shared import needed, rows

FOLDER = "cost-genai-prices"
AT = datetime(2026, 8, 21, 12, tzinfo=UTC)
"""The day of that list."""

Normaliser = Callable[[Mapping[str, Any]], Usage]
SPOKEN: dict[str, Normaliser] = {
    "anthropic/default": normalisers.from_anthropic,
    "azure/anthropic": normalisers.from_anthropic,
    "openai/responses": normalisers.from_responses,
    "azure/responses": normalisers.from_responses,
    "openai/chat": normalisers.from_chat,
    "azure/chat": normalisers.from_chat,
    "groq/default": normalisers.from_chat,
    "openrouter/chat": normalisers.from_chat,
    "mistral/default": normalisers.from_chat,
    "deepseek/chat": normalisers.from_chat,
}
NOT_SPOKEN = {"openai/embeddings", "azure/embeddings"}
"""Retrieval embeds, and counts for itself."""
WRITES_UNSEEN = {"azure/chat", "azure/responses"}
"""Flavours by which that list does not read the cache writes that their bodies do report."""


@dataclass(frozen=True, slots=True)
class Case:
    """One body as one provider/flavour prices it."""

    flavour: str
    model: str
    reported: Mapping[str, Any]
    counted: Mapping[str, int]
    dollars: Decimal

    @property
    def foreign(self) -> bool:
        """Whether the list read another API's body with this flavour: an answer that nobody would ever get."""
        keys, reader = self.reported.keys(), SPOKEN[self.flavour]
        if reader is normalisers.from_anthropic:
            return "input_tokens_details" in keys
        return reader is normalisers.from_responses and "cache_creation_input_tokens" in keys

    def misread(self, usage: Usage) -> bool:
        """Whether the list overlooked what the body says."""
        return self.flavour in WRITES_UNSEEN and usage.cache_write_5m > 0


def cases() -> Iterator[Case]:
    for line in rows(FOLDER, "cases.jsonl.gz"):
        for flavour, parts in line["prices_usd"].items():
            dollars = sum((Decimal(part) for part in parts if part is not None), Decimal(0))
            yield Case(flavour, line["model"], line["body"]["usage"], line["usage"], dollars)


def listed() -> list[Provider]:
    with gzip.open(needed(FOLDER, "prices_slim.json.gz")) as file:
        return _providers_from_raw(json.load(file))


def wrong_usage(case: Case, usage: Usage) -> bool:
    ours = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write_5m + usage.cache_write_1h,
        "cache_write_5m_tokens": usage.cache_write_5m,
        "output_reasoning_tokens": usage.reasoning,
    }
    always = {"input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0}
    return any(ours[name] != n for name, n in {**always, **case.counted}.items() if name in ours)


def test_every_body_is_counted_and_priced_as_the_list_does(tell):
    providers = listed()
    counts, wrong = Counter[str](), list[str]()
    for case in cases():
        if case.flavour in NOT_SPOKEN:
            continue
        if case.foreign:
            counts["another API's body"] += 1
            continue
        usage = SPOKEN[case.flavour](case.reported)
        if case.misread(usage):
            counts["cache writes that the list does not see"] += 1
            continue
        provider = case.flavour.split("/")[0]
        prices = find_in(providers, provider, case.model, source="")
        card = ModelCard(provider="p", model="m", tier="flash", prices=prices)
        dollars = cost(card, usage, at=AT)
        if wrong_usage(case, usage) or dollars is None or abs(dollars - case.dollars) >= NANO_USD:
            wrong.append(f"{case.flavour} {case.model}: {usage!r} ${dollars}, expected {case.counted} ${case.dollars}")
        else:
            counts[case.flavour] += 1
    equal = sum(counts[flavour] for flavour in SPOKEN)
    tell(
        f"price cases: {equal} of {equal + len(wrong)} equal, each body by each flavour that prices it: {dict(counts)}"
    )
    assert wrong == []
    assert SPOKEN.keys() <= counts.keys()
