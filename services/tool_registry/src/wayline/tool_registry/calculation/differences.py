"""Measure what lies between two dates or times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from wayline.tool_registry.calculation.dates import BUSINESS_DAYS_MAX, IsFree, months_on
from wayline.tool_registry.calculation.local_times import day_of


@dataclass(frozen=True, slots=True)
class Difference:
    """What lies between two dates; below zero where the second is earlier."""

    days: int
    """Whole ones, of two times."""
    business_days: int | None
    parts: dict[str, int]
    """Years, months and days, and of two times the hours, minutes and seconds that are left."""
    seconds: int | None = None
    """Of two times."""


def difference(start: datetime | date, end: datetime | date, is_free: IsFree) -> Difference:
    """Measure from one date to another; the start does not count, the end does. Raises CannotCalculate."""
    if isinstance(start, datetime) and isinstance(end, datetime):
        return _between_times(start, end.astimezone(start.tzinfo), is_free)
    first, last = day_of(start), day_of(end)
    sign, low, high = (1, first, last) if first <= last else (-1, last, first)
    months = _months(low, high)
    months -= months_on(low, months) > high
    parts = _calendar_parts(sign * months, sign * (high - months_on(low, months)).days)
    return Difference((last - first).days, _business_days(first, last, is_free), parts)


def _between_times(start: datetime, end: datetime, is_free: IsFree) -> Difference:
    """Measure between two times of one zone: days on its calendar, and seconds as they pass."""
    # Through UTC: two times of one zone are subtracted as its clocks show them, whatever these skip or repeat.
    passed = end.astimezone(UTC) - start.astimezone(UTC)
    sign, low, high = (1, start, end) if passed >= timedelta() else (-1, end, start)
    months = _months(low, high)
    months -= _later(low, months) > high
    days = _whole_days(low, months, high)
    rest = int((high.astimezone(UTC) - _later(low, months, days)).total_seconds())
    parts = {"hours": rest // 3600, "minutes": rest // 60 % 60, "seconds": rest % 60}
    return Difference(
        days=sign * _whole_days(low, 0, high),
        business_days=_business_days(start.date(), end.date(), is_free),
        parts=_calendar_parts(sign * months, sign * days) | {name: sign * value for name, value in parts.items()},
        seconds=round(passed.total_seconds()),
    )


def _months(low: date, high: date) -> int:
    return (high.year - low.year) * 12 + high.month - low.month


def _calendar_parts(months: int, days: int) -> dict[str, int]:
    years = int(months / 12)
    return {"years": years, "months": months - years * 12, "days": days}


def _whole_days(low: datetime, months: int, high: datetime) -> int:
    """Return how many whole days are left to a time, so many months after another."""
    days = (high.date() - months_on(low.date(), months)).days
    return days - (_later(low, months, days) > high)


def _later(low: datetime, months: int, days: int = 0) -> datetime:
    """Return the moment at which the clocks show the same time so many months and days later."""
    day = months_on(low.date(), months) + timedelta(days=days)
    return datetime.combine(day, low.timetz()).astimezone(UTC)


def _business_days(first: date, last: date, is_free: IsFree) -> int | None:
    days = abs((last - first).days)
    if days > BUSINESS_DAYS_MAX:
        return None
    step = 1 if first <= last else -1
    return step * sum(is_free(first + timedelta(days=step * n)) is None for n in range(1, days + 1))
