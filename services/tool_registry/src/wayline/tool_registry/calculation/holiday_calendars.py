"""Which days are no business days in a country, by the library `holidays`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from wayline.contracts.nearest import nearest_names
from wayline.tool_registry.calculation.local_times import CannotCalculate, day_of

LISTED_DAYS_MAX = 366 * 3
WEEKENDS_ONLY = "Business days are counted without holidays: give a country to count them."
OWN = "a given holiday"
_SATURDAY = 5


@dataclass(frozen=True, slots=True)
class BusinessCalendar:
    """The weekends and holidays that count in one calculation."""

    country: Any = None
    """A calendar of the library; None: weekends alone, on Saturday and Sunday."""
    own: frozenset[date] = field(default_factory=frozenset)
    """Days that the caller takes off besides."""
    note: str | None = WEEKENDS_ONLY
    """What does not count."""

    def why_free(self, day: datetime | date) -> str | None:
        """Return why a day is no business day; None for a business day. Raises CannotCalculate."""
        day = day_of(day)
        if day in self.own:
            return OWN
        if self.country is None:
            return "weekend" if day.weekday() >= _SATURDAY else None
        self._check_year(day)
        return None if self.country.is_working_day(day) else self.country.get(day, "weekend")

    def holidays(self, first: date, last: date) -> dict[date, str]:
        """Return the holidays from one day to another, weekends apart. Raises CannotCalculate."""
        if last < first:
            raise CannotCalculate(f"holidays are listed from date to end_date: {last} is before {first}, swap them")
        if (last - first).days > LISTED_DAYS_MAX:
            raise CannotCalculate("holidays are listed for three years at most")
        self._check_year(first)
        self._check_year(last)
        days = (first + timedelta(days=n) for n in range((last - first).days + 1))
        names = ((day, OWN if day in self.own else self.country.get(day)) for day in days)
        return {day: name for day, name in names if name is not None}

    def _check_year(self, day: date) -> None:
        known = self.country
        if not known.start_year <= day.year <= known.end_year:
            raise CannotCalculate(
                f"the holidays of {known.country} are known from {known.start_year} to {known.end_year}: leave the "
                "country out to count weekends alone"
            )


def business_calendar(country: str | None, region: str | None, own: Iterable[date]) -> BusinessCalendar:
    """Return the calendar of a country, by its ISO 3166 code. Raises CannotCalculate."""
    off = frozenset(own)
    if country is None:
        if region is not None:
            raise CannotCalculate("a region needs its country too, such as country CH and region ZH")
        return BusinessCalendar(own=off)
    # Takes a while to import, and most calculations need no holidays.
    import holidays

    regions_of = holidays.list_supported_countries()
    code = country.strip().upper()
    if code not in regions_of:
        raise CannotCalculate(
            f"{country!r} is no country whose holidays are known: give its ISO code, such as CH or US"
        )
    whole = holidays.country_holidays(code, language="en_US")
    if region is not None:
        part = _region_code(code, region, whole)
        return BusinessCalendar(holidays.country_holidays(code, subdiv=part, language="en_US"), off, note=None)
    return BusinessCalendar(whole, off, note=_without_region(code, regions_of[code]))


def _without_region(code: str, regions: Iterable[str]) -> str | None:
    some = ", ".join([*regions][:3])
    return f"Only holidays of all of {code} are counted: give a region, such as {some}, for its own." if some else None


def _region_code(code: str, region: str, whole: Any) -> str:
    """Return the library's code of a region, by its ISO 3166-2 code or its name. Raises CannotCalculate."""
    named = {**whole.subdivisions_aliases, **{one: one for one in whole.subdivisions}}
    found = {_folded(name): one for name, one in named.items()}.get(_folded(region).removeprefix(f"{code.lower()}-"))
    if found is not None:
        return found
    near = nearest_names(region, named, most=3, cutoff=0.3) or [*named][:10]
    there = f"there are {', '.join(near)}" if near else "its holidays are the same everywhere: leave the region out"
    raise CannotCalculate(f"{code} has no region {region!r} with holidays of its own; {there}")


def _folded(name: str) -> str:
    """Return a name without case and accents, so that `zurich` finds `Zürich`."""
    letters = unicodedata.normalize("NFKD", name.strip().casefold())
    return "".join(one for one in letters if not unicodedata.combining(one))
