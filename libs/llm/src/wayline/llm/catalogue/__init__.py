"""The models everybody can use: what each can do, by hand in one file a provider, and what it costs, generated."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from wayline.contracts.image_models import ImageModel
from wayline.contracts.models import ModelCard, Prices
from wayline.llm.prices import LOCAL

PROVIDERS = ("anthropic", "openai", "chat", "offline")
"""In the order in which a tier looks for its model: what runs without any provider comes last."""


@cache
def bundled() -> tuple[ModelCard, ...]:
    """Return every bundled card. Of two in a tier the first is the tier's default."""
    return tuple(_cards())


@cache
def known_prices() -> Mapping[str, Prices]:
    """Return the prices looked up when this version was made, by `provider/model`."""
    return TypeAdapter(dict[str, Prices]).validate_json(_read("prices.json"))


@cache
def image_models() -> tuple[ImageModel, ...]:
    """Return the models that make images, with their prices."""
    tables = tomllib.loads(_read("images.toml"))["models"]
    named = ((name.partition("/"), fields) for name, fields in tables.items())
    return tuple(
        ImageModel.model_validate({"provider": provider, "model": model, **fields}, extra="forbid")
        for (provider, _, model), fields in named
    )


def facts() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield provider, model and the fields of its table in the provider's file."""
    for provider in PROVIDERS:
        page = tomllib.loads(_read(f"{provider}.toml"))
        for model, fields in page["models"].items():
            yield provider, model, _merged(page["defaults"], fields)


def overlay(cards: Iterable[ModelCard], own: Iterable[ModelCard]) -> tuple[ModelCard, ...]:
    """Return a catalogue with a tenant's cards: one of a known name replaces it, a new one comes last.

    So that adding a model never changes which one a tier meant before; the local models stay last.
    """
    ours = {card.name: card for card in own}
    known = [ours.pop(card.name, card) for card in cards]
    local = [card for card in known if card.provider in LOCAL]
    return (*(card for card in known if card.provider not in LOCAL), *ours.values(), *local)


def usable(cards: Iterable[ModelCard], providers: Mapping[str, str]) -> tuple[ModelCard, ...]:
    """Return the callable cards in their order. `providers`: the base URL of each configured provider.

    Local models always can. Where nothing else is left, agents run on the offline model.
    """
    return tuple(card for card in cards if card.provider in LOCAL or _there(card, providers.get(card.provider)))


def _there(card: ModelCard, base_url: str | None) -> bool:
    return base_url is not None and card.host in (None, urlsplit(base_url).hostname)


def _cards() -> Iterator[ModelCard]:
    prices = known_prices()
    for provider, model, fields in facts():
        name = {"provider": provider, "model": model}
        card = ModelCard.model_validate(name | fields, extra="forbid")
        yield card.model_copy(update={"prices": prices.get(card.name)})


def _merged(defaults: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Merge a model's fields over its provider's defaults; nested tables are merged, not replaced."""
    both = {key: {**defaults[key], **value} for key, value in fields.items() if isinstance(defaults.get(key), dict)}
    return {**defaults, **fields, **both}


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text()
