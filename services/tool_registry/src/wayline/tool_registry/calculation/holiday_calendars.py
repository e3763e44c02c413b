"""Which days are no business days in a country, by the library `holidays`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from wayline.contracts.nearest import nearest_names
from wayline.tool_registry.calculation.local_times import CannotCalculate

LISTED_DAYS_MAX = 366 * 3
WEEKENDS_ONLY = "Business days are counted without holidays: give a country to count them."
_SATURDAY, _SUNDAY = 5, 6


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
        """Return why a day is no business day; None for a business day."""
        day = day.date() if isinstance(day, datetime) else day
        if day in self.own:
            return "a given holiday"
        if self.country is not None and (name := self.country.get(day)):
            return str(name)
        weekend = {_SATURDAY, _SUNDAY} if self.country is None else self.country.weekend
        return "weekend" if day.weekday() in weekend else None

    def holidays(self, first: date, last: date) -> dict[date, str]:
        """Return the holidays from one day to another, weekends apart. Raises CannotCalculate."""
        if (last - first).days > LISTED_DAYS_MAX:
            raise CannotCalculate("holidays are listed for three years at most")
        days = (first + timedelta(days=n) for n in range((last - first).days + 1))
        return {day: why for day in days if (why := self.why_free(day)) not in (None, "weekend")}


def business_calendar(country: str | None, region: str | None, own: Iterable[date]) -> BusinessCalendar:
    """Return the calendar of a country, by its ISO 3166 code. Raises CannotCalculate."""
    off = frozenset(own)
    if country is None:
        if region is not None:
            raise CannotCalculate("a region needs its country too, such as country CH and region ZH")
        return BusinessCalendar(own=off)
    # Takes a while to import, and most calculations need no holidays.
    import holidays

    known = holidays.list_supported_countries()
    code = country.strip().upper()
    if code not in known:
        raise CannotCalculate(
            f"{country!r} is no country whose holidays are known: give its ISO code, such as CH or US"
        )
    regions = {one.upper(): one for one in known[code]}
    if region is not None and region.strip().upper() not in regions:
        near = nearest_names(region.upper(), regions, most=3, cutoff=0.3) or known[code][:10]
        there = f"there are {', '.join(near)}" if near else "its holidays are the same everywhere: leave the region out"
        raise CannotCalculate(f"{code} has no region {region!r} with holidays of its own; {there}")
    return BusinessCalendar(
        holidays.country_holidays(code, subdiv=regions[region.strip().upper()] if region else None, language="en_US"),
        off,
        note=None,
    )
