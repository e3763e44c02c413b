"""The card of a model as a form, made of the API's own schema; its prices field by field. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wayline.console.render.json_text import parsed
from wayline.console.render.schema_form import ApiSchemas, SchemaField, WrongField, pick, put, value_of

SCHEMA: Final = "ModelCard"
NAMED: Final = ("provider", "model", "prices")
RATES: Final = (
    ("input", "Input"),
    ("output", "Output"),
    ("cache_read", "Read from cache"),
    ("cache_write_5m", "Written to cache, 5 minutes"),
    ("cache_write_1h", "Written to cache, 1 hour"),
)
FURTHER: Final = ("above", "when")
"""Other rates by size and time: as JSON."""


@dataclass(frozen=True, slots=True)
class CardField:
    """One field with what it holds."""

    field: SchemaField
    value: str
    error: str = ""
    inherited: None = None
    is_model: bool = False
    marked: str = ""

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def label(self) -> str:
        group, _, _ = self.name.rpartition(".")
        return f"{group.capitalize()}: {self.field.label.lower()}" if group else self.field.label

    @property
    def help(self) -> str:
        return self.field.said


def fields_of(schemas: ApiSchemas, card: Mapping[str, Any], problems: Mapping[str, str]) -> list[CardField]:
    """Return the form of a card without its name and its prices."""
    found: list[CardField] = []
    for one in schemas.fields(SCHEMA, without=NAMED):
        value = pick(card, one.name)
        found.append(CardField(one, one.text(one.default if value is None else value), problems.get(one.name, "")))
    return found


def further_text(prices: Mapping[str, Any] | None) -> str:
    """Return the further rates of a card as its form shows them."""
    further = {name: prices[name] for name in FURTHER if prices.get(name)} if prices else {}
    return json.dumps(further, indent=2) if further else ""


def read_card(
    get: Callable[[str], str | None], fields: list[CardField], *, provider: str, model: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the card that a form says, and what is wrong with single fields."""
    card: dict[str, Any] = {"provider": provider, "model": model}
    problems: dict[str, str] = {}
    for one in fields:
        text = get(one.name)
        try:
            if one.field.kind == "switch":
                put(card, one.name, text is not None and value_of(one.field, text))
            elif text:
                put(card, one.name, value_of(one.field, text))
            elif one.field.kind == "lines":
                put(card, one.name, [])
        except WrongField as error:
            problems[one.name] = error.message
    prices, problem = _prices(get)
    if problem:
        problems["prices"] = problem
    return card | {"prices": prices}, problems


def _prices(get: Callable[[str], str | None]) -> tuple[dict[str, Any] | None, str]:
    """Return the prices that a form says; None: they are unknown, which is not zero."""
    rates = {name: text for name, _ in RATES if (text := get(f"price.{name}"))}
    if not rates:
        return None, ""
    try:
        further = parsed(get("price.further") or "{}")
    except ValueError:
        return None, "the further rates are not JSON"
    if not isinstance(further, dict) or set(further) - set(FURTHER):
        return None, "the further rates are a JSON object with `above` and `when`"
    return {"rates": rates, "source": get("price.source") or "", **further}, ""
