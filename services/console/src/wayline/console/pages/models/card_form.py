"""The card of a model as a form, made of the API's own schema; its prices field by field. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wayline.console.pages.models.rate_rows import RATES, RateRow, read_rows, rows_of, tariffs_of, with_problems
from wayline.console.render.form_rows import Get
from wayline.console.render.schema_form import ApiSchemas, SchemaField, WrongField, pick, put, value_of

SCHEMA: Final = "ModelCard"
NAMED: Final = ("provider", "model", "prices")


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


@dataclass(frozen=True, slots=True)
class PricesForm:
    """The prices of a card as they stand in its form."""

    rates: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    rows: list[RateRow] = field(default_factory=list)

    @classmethod
    def of(cls, prices: Mapping[str, Any] | None) -> PricesForm:
        """Return the form of prices; None: they are unknown."""
        if not prices:
            return cls()
        rates = {name: str(rate) for name, rate in prices["rates"].items() if rate is not None}
        return cls(rates, prices["source"], rows_of(prices))

    @classmethod
    def typed(cls, get: Get, problems: Mapping[str, str]) -> PricesForm:
        """Return the form as it was sent, with what the API said of it."""
        rates = {name: text for name, _ in RATES if (text := get(f"price.{name}"))}
        rows = read_rows(get)
        return cls(rates, get("price.source") or "", with_problems(rows, problems))

    def prices(self) -> dict[str, Any] | None:
        """Return the prices; None: they are unknown, which is not zero. Raises WrongField."""
        wrong = next((f"row {number}: {row.error}" for number, row in enumerate(self.rows, 1) if row.error), "")
        if wrong:
            raise WrongField("prices", f"other rates, {wrong}")
        if self.rows and not self.rates:
            raise WrongField("prices", "give the rates that hold otherwise, above the other rates")
        return {"rates": self.rates, "source": self.source, **tariffs_of(self.rows)} if self.rates else None


def fields_of(
    schemas: ApiSchemas, card: Mapping[str, Any], problems: Mapping[str, str], typed: Get | None = None
) -> list[CardField]:
    """Return the form of a card without its name and its prices; `typed`: what was, where it cannot be read."""
    found: list[CardField] = []
    for one in schemas.fields(SCHEMA, without=NAMED):
        value, error = pick(card, one.name), problems.get(one.name, "")
        text = one.text(one.default if value is None else value)
        found.append(CardField(one, typed(one.name) or "" if typed and error else text, error))
    return found


def read_card(get: Get, fields: list[CardField], *, provider: str, model: str) -> tuple[dict[str, Any], dict[str, str]]:
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
    prices = None
    try:
        prices = PricesForm.typed(get, {}).prices()
    except WrongField as error:
        problems["prices"] = error.message
    return card | {"prices": prices}, problems
