"""The further rates of a model as rows of a form: for large requests, and for some times. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from wayline.console.render.form_rows import Get, SentRow, sent_rows

NAME: Final = "price.further"
RATES: Final = (
    ("input", "Input"),
    ("output", "Output"),
    ("cache_read", "Cache read"),
    ("cache_write_5m", "Cache write, 5 min"),
    ("cache_write_1h", "Cache write, 1 h"),
)
TIMES: Final = ("since", "daily_from", "daily_until")


@dataclass(frozen=True, slots=True)
class RateRow:
    """Other rates, and when they hold."""

    tokens: str = ""
    """Of a request with more of input; empty: of any size."""
    times: Mapping[str, str] = field(default_factory=dict)
    """By the names of TIMES; none: at any time."""
    rates: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.tokens or self.times or self.rates)


def rows_of(prices: Mapping[str, Any] | None) -> list[RateRow]:
    """Return the further rates of a card; those of some times stand before their steps by size."""
    found = list[RateRow]()
    if prices:
        found += _steps(prices, {})
        for tariff in prices.get("when", ()):
            times = {name: _typed(tariff[name]) for name in TIMES if tariff.get(name)}
            found += [RateRow(times=times, rates=_rates(tariff)), *_steps(tariff, times)]
    return found


def with_room(rows: Sequence[RateRow]) -> list[RateRow]:
    """Return rows with an empty one below."""
    return [*rows, RateRow()]


def _typed(time: str) -> str:
    """Return a day or a time of day as one types it: 22:00, not 22:00:00."""
    return time.removesuffix(":00") if time.count(":") == 2 else time


def _steps(tariff: Mapping[str, Any], times: Mapping[str, str]) -> list[RateRow]:
    return [RateRow(str(step["tokens"]), times, _rates(step)) for step in tariff.get("above", ())]


def _rates(tariff: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(rate) for name, rate in tariff["rates"].items() if rate is not None}


def read_rows(get: Get) -> list[RateRow]:
    """Return the rows that a form sends, those that are filled in, each with what is wrong with it."""
    found, tariffs = list[RateRow](), list[Mapping[str, str]]()
    for sent in sent_rows(get, NAME, by="tokens"):
        row = _row(sent)
        if row.is_empty:
            continue
        found.append(replace(row, error=_problem(row, tariffs)))
        if row.times and not row.tokens:
            tariffs.append(row.times)
    return found


def _row(sent: SentRow) -> RateRow:
    texts = {name: sent.text(name) for name in (*TIMES, *(name for name, _ in RATES))}
    given = {name: text for name, text in texts.items() if text}
    times = {name: text for name, text in given.items() if name in TIMES}
    return RateRow(sent.text("tokens"), times, {name: text for name, text in given.items() if name not in TIMES})


def _problem(row: RateRow, tariffs: Sequence[Mapping[str, str]]) -> str:
    if not row.tokens and not row.times:
        return "say above how many tokens these rates hold, or at which times"
    if "input" not in row.rates or "output" not in row.rates:
        return "give the rates of input and of output"
    if row.tokens and not row.tokens.isdecimal():
        return f"{row.tokens[:20]!r} is not a whole number of tokens such as 200000"
    if row.tokens and row.times and row.times not in tariffs:
        return "first give, in a row above, the rates of smaller requests at these times"
    return ""


def tariffs_of(rows: Sequence[RateRow]) -> dict[str, Any]:
    """Return `above` and `when` of a card's prices, of rows that have no problem."""
    above: list[dict[str, Any]] = []
    when: list[dict[str, Any]] = []
    for row, place in zip(rows, places_of(rows), strict=True):
        match place:
            case ("above", _):
                above.append(_step(row))
            case ("when", _):
                when.append({"rates": row.rates, **row.times})
            case (_, number, *_):
                when[int(number)].setdefault("above", []).append(_step(row))
    return {name: value for name, value in (("above", above), ("when", when)) if value}


def places_of(rows: Sequence[RateRow]) -> list[tuple[str, ...]]:
    """Return where each row stands in a card's prices, such as `when`, `0`, `above`, `1`."""
    found = list[tuple[str, ...]]()
    taken = Counter[tuple[str, ...]]()
    tariffs = list[Mapping[str, str]]()
    for row in rows:
        if not row.times:
            place: tuple[str, ...] = ("above",)
        elif not row.tokens:
            place = ("when",)
            tariffs.append(row.times)
        else:
            # The nearest above: of two with the same times the later one holds.
            number = len(tariffs) - 1 - tariffs[::-1].index(row.times)
            place = ("when", str(number), "above")
        found.append((*place, str(taken[place])))
        taken[place] += 1
    return found


def with_problems(rows: Sequence[RateRow], problems: Mapping[str, str]) -> list[RateRow]:
    """Return rows with what the API says of each; `problems`: by the place in the card."""
    if any(row.error for row in rows):
        return list(rows)
    places = [f"prices.{'.'.join(place)}." for place in places_of(rows)]
    errors = [""] * len(rows)
    for name, message in problems.items():
        fitting = [number for number, place in enumerate(places) if name.startswith(place)]
        if fitting:
            errors[max(fitting, key=lambda number: len(places[number]))] = message
    return [replace(row, error=row.error or error) for row, error in zip(rows, errors, strict=True)]


def _step(row: RateRow) -> dict[str, Any]:
    return {"tokens": int(row.tokens), "rates": row.rates}
