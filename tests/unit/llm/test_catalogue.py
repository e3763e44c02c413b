"""The bundled models, a tenant's own over them, and which of both can be called."""

from __future__ import annotations

import pytest

from wayline.contracts.models import ModelCard, Tier
from wayline.llm.catalogue import PROVIDERS, bundled, overlay, usable
from wayline.llm.endpoints import Endpoint, EndpointSettings

CARDS = {card.name: card for card in bundled()}
KEY = "sk-secret"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"


def first(provider: str) -> dict[Tier, str]:
    found: dict[Tier, str] = {}
    for card in bundled():
        if card.provider == provider:
            found.setdefault(card.tier, card.model)
    return found


def own(provider: str, model: str, tier: Tier = "standard") -> ModelCard:
    return ModelCard(provider=provider, model=model, tier=tier)


def test_each_tier_of_a_provider_means_its_newest_model():
    assert first("anthropic") == {
        "flash": "claude-haiku-5-5",
        "standard": "claude-sonnet-5-5",
        "premium": "claude-opus-5-5",
        "reasoning": "claude-fable-5-2",
    }
    assert first("openai") == {
        "flash": "gpt-6-luna",
        "standard": "gpt-6.1-terra",
        "premium": "gpt-6-sol",
        "reasoning": "gpt-6-astra",
    }


def test_every_cards_window_holds_its_output_and_names_are_unique():
    assert len(CARDS) == len(bundled())
    for card in bundled():
        assert card.output_limit < card.context_window, card.name
        assert card.provider in PROVIDERS
        assert bool(card.efforts) == (card.reasoning in ("adaptive", "effort")), card.name


def test_cards_of_current_models_declare_what_they_refuse():
    refused = {name for name, card in CARDS.items() if card.provider != "offline" and not card.forced_tools}

    assert {f"anthropic/claude-{name}" for name in ("sonnet-5-5", "opus-5-5", "fable-5-1", "fable-5-2")} <= refused
    assert "anthropic/claude-haiku-5-5" not in refused
    assert all(not card.temperature for card in bundled() if card.provider in ("anthropic", "openai"))
    assert CARDS["anthropic/claude-haiku-5-5"].bound_thinking
    assert not CARDS["anthropic/claude-opus-5"].bound_thinking
    assert (CARDS["anthropic/claude-haiku-4-5"].cache.min_tokens, CARDS["openai/gpt-6-sol"].cache.kind) == (
        4_096,
        "automatic",
    )


def test_a_catalogue_entry_holds_only_differences_from_its_providers_defaults():
    cache = CARDS["anthropic/claude-opus-4-7"].cache

    assert (cache.min_tokens, cache.kind, cache.lookback_blocks, cache.breakpoints_max) == (2_048, "breakpoints", 20, 4)


def test_only_prices_missing_in_the_list_are_unknown():
    assert {card.name for card in bundled() if card.prices is None} == {"openai/gpt-6.2-sol", "openai/gpt-6.2-astra"}


def test_own_cards_replace_bundled_ones_or_precede_the_local_models():
    replaced, added = own("openai", "gpt-6.1-terra", "premium"), own("chat", "qwen3:8b")

    cards = overlay(bundled(), [added, replaced])

    names = [card.name for card in bundled()]
    assert [card.name for card in cards] == [*names[:-1], "chat/qwen3:8b", names[-1]]
    assert names[-1] == "offline/extractive"
    assert cards[names.index("openai/gpt-6.1-terra")] is replaced


def test_without_a_provider_only_the_offline_model_can_be_called():
    assert [card.name for card in usable(bundled(), {})] == ["offline/extractive"]


def test_a_card_of_one_host_is_there_only_behind_that_host():
    qwen = own("chat", "qwen3:8b")
    cards = overlay(bundled(), [qwen])

    local = [card.name for card in usable(cards, {"chat": "http://127.0.0.1:11434/v1"})]
    gemini = [card.name for card in usable(cards, {"chat": GEMINI})]

    assert local == ["chat/qwen3:8b", "offline/extractive"]
    assert "chat/gemini-3.8-flash" in gemini and "anthropic/claude-haiku-5-5" not in gemini


@pytest.mark.parametrize(
    ("set_to", "found"),
    [
        ({}, {}),
        ({"anthropic_api_key": "", "chat_base_url": ""}, {}),
        ({"anthropic_api_key": KEY}, {"anthropic": Endpoint("https://api.anthropic.com", KEY)}),
        ({"openai_api_key": KEY}, {"openai": Endpoint("https://api.openai.com/v1", KEY)}),
        ({"openai_base_url": "http://l"}, {"openai": Endpoint("http://l", None)}),
        ({"anthropic_base_url": "http://l"}, {"anthropic": Endpoint("http://l", None)}),
        ({"chat_base_url": "http://l"}, {"chat": Endpoint("http://l", None)}),
        ({"chat_api_key": KEY}, {}),
    ],
)
def test_a_key_or_an_address_makes_a_provider(set_to: dict[str, str], found: dict[str, Endpoint]):
    variables = {str(EndpointSettings.model_fields[name].validation_alias): value for name, value in set_to.items()}

    settings = EndpointSettings.model_validate(variables)

    assert settings.endpoints() == found
    assert KEY not in repr((settings, settings.endpoints()))
