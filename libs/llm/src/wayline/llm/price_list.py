"""The public price list in our own terms: `genai-prices`, looked at only where nobody has said what a model costs.

Loading it takes the better part of a second and some 100 MB, so it is imported where it is first asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

from wayline.contracts.models import Prices, Rates, RatesAbove, Tariff, TariffWhen
from wayline.llm.catalogue import known_prices

if TYPE_CHECKING:
    from decimal import Decimal

    from genai_prices.types import ConditionalPrice, ModelInfo, ModelPrice, Provider

PACKAGE, MODULE = "genai-prices", "genai_prices"
OURS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_5m_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
}
"""Our rates by the list's names for them."""
ANY_WRITE = "cache_write_mtok"
"""What a cache write costs whose time to live has no price of its own."""
NEVER_USED = ("audio", "image", "video", "searches", "kpages", "executions", "gpixels")
"""Parts of a price, by a word in their name, for what we never ask of a model: they cannot make a call dearer."""


def find_prices(provider: str, model: str) -> Prices | None:
    """Return a model's prices from the bundled catalogue, else from the price list; None if neither has them."""
    return known_prices().get(f"{provider}/{model}") or _listed(provider, model)


def _listed(provider: str, model: str) -> Prices | None:
    # By name: a type checker would read the 1.6 MB of Python that the list is, for half a minute.
    providers: list[Provider] = import_module(f"{MODULE}.data").providers
    return find_in(providers, provider, model, source=edition())


def edition() -> str:
    """Return the list's name and version."""
    return f"{PACKAGE} {version(PACKAGE)}"


def find_in(providers: Iterable[Provider], provider: str, model: str, *, source: str) -> Prices | None:
    """Return a model's prices from a loaded list."""
    providers = list(providers)
    # By its exact id: the list's own search also takes names that only look like a provider's.
    named = next((p for p in providers if p.id == provider), None)
    info = named and named.find_model(model.lower(), all_providers=providers)
    if named is None or info is None:
        return None
    return from_listed(info, source=f"{source}, {named.id}/{info.id}")


def from_listed(info: ModelInfo, *, source: str) -> Prices | None:
    """Return a model's prices in our terms; None where ours cannot say a part of them, or where they are zero."""
    if not isinstance(info.prices, list):
        always, rest = info.prices, []
    elif info.prices:
        # One without a condition hides all before it; where none holds, the list takes the first.
        n = max((n for n, price in enumerate(info.prices) if price.constraint is None), default=0)
        always, rest = info.prices[n].prices, info.prices[n + 1 :]
    else:
        return None
    held, when = _tariff(always), [_when(price) for price in rest]
    if held is None or None in when or any(_free(each) for each in (held, *when) if each):
        return None
    return Prices(rates=held.rates, above=held.above, when=tuple(w for w in when if w), source=source)


def _free(held: Tariff) -> bool:
    """Return whether a call costs nothing by these rates: the list says so of models whose price it does not know.

    Free is what its owner declares to be free, on a card of their own.
    """
    return any(not rates.input and not rates.output for rates in (held.rates, *(step.rates for step in held.above)))


def _when(price: ConditionalPrice) -> TariffWhen | None:
    from genai_prices.types import StartDateConstraint, TimeOfDateConstraint

    held, condition = _tariff(price.prices), price.constraint
    if held is None:
        return None
    if isinstance(condition, StartDateConstraint):
        return TariffWhen(rates=held.rates, above=held.above, since=condition.start_date)
    if isinstance(condition, TimeOfDateConstraint):
        begins, ends = _utc(condition.start_time), _utc(condition.end_time)
        return TariffWhen(rates=held.rates, above=held.above, daily_from=begins, daily_until=ends)
    return None


def _utc(at: time) -> time:
    """Return a time of day in UTC; one without a zone is in UTC already."""
    return at if at.tzinfo is None else datetime.combine(date(1970, 1, 1), at).astimezone(UTC).time()


def _tariff(price: ModelPrice) -> Tariff | None:
    from genai_prices.types import TieredPrices

    parts = {name: part for name, part in vars(price).items() if part is not None and not name.startswith("_")}
    parts = {name: part for name, part in parts.items() if not any(word in name for word in NEVER_USED)}
    if "input_mtok" not in parts or parts.keys() - {*OURS.values(), ANY_WRITE}:
        return None
    starts = sorted({t.start for part in parts.values() if isinstance(part, TieredPrices) for t in part.tiers})
    steps = tuple(RatesAbove(tokens=start, rates=_rates(parts, start)) for start in starts)
    return Tariff(rates=_rates(parts, None), above=steps)


def _rates(parts: dict[str, object], start: int | None) -> Rates:
    """Return the rates of a request with more input than `start`, or with any, each part by its own steps."""
    held = {ours: _at(parts.get(theirs), start) for ours, theirs in OURS.items()}
    written = _at(parts.get(ANY_WRITE), start)
    for write in ("cache_write_5m", "cache_write_1h"):
        held[write] = written if held[write] is None else held[write]
    # An embedding has no output, and so no price for it.
    return Rates.model_validate({**held, "output": held["output"] or 0})


def _at(part: object, start: int | None) -> Decimal | None:
    from genai_prices.types import TieredPrices

    if not isinstance(part, TieredPrices):
        return part  # type: ignore[return-value]
    reached = [tier.price for tier in part.tiers if start is not None and tier.start <= start]
    return reached[-1] if reached else part.base
