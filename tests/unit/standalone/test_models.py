"""Models on the command line: what is unknown is said to be, and the doctor knows what is configured."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from wayline.contracts.models import ModelCard, ModelList, Prices, Rates, RatesAbove
from wayline.llm.catalogue import bundled
from wayline.llm.endpoints import EndpointSettings
from wayline.standalone.checks.models import examine_models
from wayline.standalone.drawing_models import model_details, models_table

RATES = Rates.model_validate({"input": "0.1", "output": "0.5", "cache_read": "0.01"})
STEPPED = ModelCard(
    provider="p",
    model="stepped",
    tier="flash",
    prices=Prices(rates=RATES, above=(RatesAbove(tokens=100, rates=RATES),)),
)
FREE = ModelCard(
    provider="p", model="free", tier="flash", prices=Prices.model_validate({"rates": {"input": 0, "output": 0}})
)
UNPRICED = ModelCard(provider="p", model="unpriced", tier="flash")


def drawn(what: Any) -> list[list[str]]:
    page = io.StringIO()
    Console(file=page, width=200).print(what)
    return [line.split() for line in page.getvalue().splitlines()]


def said(card: ModelCard) -> dict[str, Any]:
    return card.model_dump(mode="json")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch):
    for field in EndpointSettings.model_fields.values():
        monkeypatch.delenv(str(field.validation_alias), raising=False)


async def findings() -> list[tuple[str, str]]:
    return [(finding.state, finding.said) async for finding in examine_models()]


def test_an_unknown_price_is_shown_as_unknown_and_a_free_model_as_zero():
    listed = ModelList(models=(STEPPED, FREE, UNPRICED), usable=("p/free",), own=("p/free", "p/unpriced"))

    rows = {row[0]: row[3:] for row in drawn(models_table(listed.model_dump(mode="json")))[1:]}

    assert rows == {
        "p/stepped": ["0.1+", "0.01+", "0.5+", "off"],
        "p/free": ["0", "0", "0", "own"],
        "p/unpriced": ["unknown", "unknown", "unknown", "own,", "off"],
    }


@pytest.mark.parametrize("card", [STEPPED, UNPRICED, *bundled()], ids=lambda card: card.name)
def test_every_card_can_be_shown(card: ModelCard):
    rows = [" ".join(row) for row in drawn(model_details(said(card)))]

    assert f"model {card.model}" in rows
    assert ("price unknown" in rows) == (card.prices is None)
    assert len([row for row in rows if row.startswith("above ")]) == len(card.prices.above if card.prices else ())


async def test_without_a_provider_the_doctor_says_what_answers_instead():
    (found,) = await findings()

    assert found == ("note", "no provider is configured, so agents run on the offline model")


async def test_the_doctor_names_each_provider_and_the_models_whose_price_nobody_knows(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")

    assert await findings() == [
        ("ok", "anthropic at http://127.0.0.1:9, without a key"),
        ("ok", "openai at https://api.openai.com/v1"),
        ("note", "nobody says what these cost: openai/gpt-6.2-sol, openai/gpt-6.2-astra"),
    ]


async def test_the_doctor_says_that_an_endpoint_has_no_model_in_the_catalogue_yet(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAYLINE_CHAT_BASE_URL", "http://127.0.0.1:11434/v1")

    assert await findings() == [
        ("ok", "chat at http://127.0.0.1:11434/v1, without a key"),
        ("note", "the catalogue has no model of the configured providers"),
    ]
