"""Write the catalogue's prices.json: `python tools/make_catalogue.py` writes, `--check` fails when it is stale.

It has the prices of every bundled model from the price list and overrides.toml, and no model that neither knows.
"""

from __future__ import annotations

import json
import sys
import tomllib
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from genai_prices.data import providers

from wayline.contracts.models import Prices
from wayline.llm.catalogue import facts
from wayline.llm.price_list import edition, find_in
from wayline.llm.prices import prices_at

FOLDER = Path(__file__).parents[1] / "libs" / "llm" / "src" / "wayline" / "llm" / "catalogue"
PRICES = FOLDER / "prices.json"


def text() -> str:
    """Return the text that prices.json must have."""
    overrides = tomllib.loads((FOLDER / "overrides.toml").read_text(), parse_float=Decimal)
    listed_as = {f"{provider}/{model}": fact.get("priced_as") for provider, model, fact in facts()}
    listed_as |= dict.fromkeys(overrides["also"])
    found = {name: _listed(known_as or name, overrides) for name, known_as in listed_as.items()}
    found |= {name: Prices.model_validate(prices, extra="forbid") for name, prices in overrides["prices"].items()}
    encoded = {name: prices.model_dump(mode="json", exclude_defaults=True) for name, prices in found.items() if prices}
    return json.dumps(encoded, indent=1, sort_keys=True) + "\n"


def _listed(name: str, overrides: dict[str, Any]) -> Prices | None:
    provider, _, model = name.partition("/")
    prices = find_in(providers, provider, model, source=edition())
    return prices and prices_at(prices, datetime.combine(overrides["as_of"], time(), UTC))


def main() -> None:
    if "--check" in sys.argv[1:]:
        if PRICES.read_text() != text():
            sys.exit(f"{PRICES.name} is stale; run `python tools/make_catalogue.py` and look at the difference")
        return
    PRICES.write_text(text())


if __name__ == "__main__":
    main()
