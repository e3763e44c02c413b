"""Calculate with dates: arithmetic, differences, ends of periods, weekdays, business days, zones."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Unit = Literal["week", "month", "quarter", "year"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
BUSINESS_DAYS_MAX = 20_000
NTH_MAX = 53

IsFree = Callable[[date], str | None]
"""Returns why a day is no business day: its holiday, or that it is a weekend; None for a business day."""


class CannotCalculate(Exception):
    """What was asked cannot be calculated; the text says what to give instead."""


@dataclass(frozen=True, slots=True)
class Offset:
    """How far to go from a date, the large units first."""

    years: int = 0
    months: int = 0
    weeks: int = 0
    days: int = 0
    hours: int = 0
    minutes: int = 0
    seconds: int = 0
    business_days: int = 0


def zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name. Raises CannotCalculate."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CannotCalculate(f"{name!r} is no IANA time zone; Europe/Zurich and UTC are") from None


def moment(text: str, in_zone: ZoneInfo, *, now: datetime) -> datetime | date:
    """Read `today`, `now`, a date or a time; a time without an offset is in the given zone. Raises CannotCalculate."""
    word = text.strip().lower()
    if word == "now":
        return now.astimezone(in_zone)
    if word in ("today", "tomorrow", "yesterday"):
        return now.astimezone(in_zone).date() + timedelta(days={"tomorrow": 1, "yesterday": -1}.get(word, 0))
    try:
        if len(word) <= 10:
            return date.fromisoformat(text.strip())
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise CannotCalculate(
            f"{text!r} is no date: give it as 2026-03-31, as 2026-03-31T14:30 or with an offset "
            "(2026-03-31T14:30+02:00), or say now, today, tomorrow or yesterday"
        ) from None
    return read.replace(tzinfo=in_zone) if read.tzinfo is None else read


def moved(start: datetime | date, offset: Offset, is_free: IsFree) -> datetime | date:
    """Go from a date by an offset: a day that a month does not have becomes its last one.

    Raises CannotCalculate, and ValueError or OverflowError beyond the calendar.
    """
    end = start + timedelta(days=(_months_on(_day(start), offset.years * 12 + offset.months) - _day(start)).days)
    end = in_business_days(end + timedelta(weeks=offset.weeks, days=offset.days), offset.business_days, is_free)
    clock = timedelta(hours=offset.hours, minutes=offset.minutes, seconds=offset.seconds)
    if not clock:
        return end
    if not isinstance(end, datetime):
        raise CannotCalculate("hours, minutes and seconds need a time to start from, such as 2026-03-31T14:30 or now")
    # Through UTC: an hour is an hour, also in the night when clocks are changed.
    return (end.astimezone(UTC) + clock).astimezone(end.tzinfo)


def in_business_days(start: datetime | date, count: int, is_free: IsFree) -> datetime | date:
    """Go so many business days on, or back; the start itself does not count. Raises CannotCalculate."""
    if abs(count) > BUSINESS_DAYS_MAX:
        raise CannotCalculate(f"at most {BUSINESS_DAYS_MAX} business days are counted")
    step = timedelta(days=1 if count > 0 else -1)
    left = abs(count)
    while left:
        start += step
        if is_free(start) is None:
            left -= 1
    return start


def nearest_business_day(day: date, is_free: IsFree, *, forward: bool) -> date:
    """Return the day itself where it is a business day, else the next one, or the one before it."""
    step = timedelta(days=1 if forward else -1)
    for _ in range(366):
        if is_free(day) is None:
            return day
        day += step
    raise CannotCalculate("there is no business day within a year")


def period(day: date, unit: Unit, *, offset: int = 0) -> tuple[date, date]:
    """Return the first and the last day of the period that a day is in, or of one so many periods on."""
    if unit == "week":
        first = day - timedelta(days=day.weekday()) + timedelta(weeks=offset)
        return first, first + timedelta(days=6)
    length = {"month": 1, "quarter": 3, "year": 12}[unit]
    begin = (day.year * 12 + day.month - 1) // length * length + offset * length
    return _months_on(date(1, 1, 1), begin - 12), _last_day(begin + length - 1)


def _last_day(months: int) -> date:
    """Return the last day of a month, counted from the year 0."""
    year, month = divmod(months, 12)
    return date(year, month + 1, calendar.monthrange(year, month + 1)[1])


def nth_weekday(first: date, last: date, weekday: Weekday, nth: int) -> date:
    """Return the nth such weekday of a period, -1 being its last. Raises CannotCalculate."""
    number = WEEKDAYS.index(weekday)
    begin = first + timedelta(days=(number - first.weekday()) % 7)
    count = (last - begin).days // 7 + 1
    if nth == 0 or not -count <= nth <= count:
        raise CannotCalculate(
            f"from {first} to {last} there are {count} {weekday.title()}s: nth is 1 to {count}, or -1 …"
        )
    return begin + timedelta(weeks=nth - 1 if nth > 0 else count + nth)


def next_weekday(day: date, weekday: Weekday, nth: int) -> date:
    """Return the nth such weekday after a day, or before it where nth is below zero. Raises CannotCalculate."""
    if nth == 0 or abs(nth) > NTH_MAX:
        raise CannotCalculate(f"nth is 1 to {NTH_MAX}, or -1 to -{NTH_MAX} for the weekdays before")
    ahead = (WEEKDAYS.index(weekday) - day.weekday()) % 7
    if nth > 0:
        return day + timedelta(days=ahead or 7, weeks=nth - 1)
    return day - timedelta(days=(7 - ahead) % 7 or 7, weeks=-nth - 1)


@dataclass(frozen=True, slots=True)
class Difference:
    """What lies between two dates; below zero where the second is earlier."""

    days: int
    business_days: int | None
    years: int
    months: int
    rest_days: int
    seconds: int | None = None
    """Of two times."""


def difference(start: datetime | date, end: datetime | date, is_free: IsFree) -> Difference:
    """Measure from one date to another; the start does not count, the end does. Raises CannotCalculate."""
    seconds = None
    if isinstance(start, datetime) and isinstance(end, datetime):
        seconds = round((end - start).total_seconds())
        end = end.astimezone(start.tzinfo)
    first, last = _day(start), _day(end)
    sign = 1 if first <= last else -1
    low, high = min(first, last), max(first, last)
    months = (high.year - low.year) * 12 + high.month - low.month
    if _months_on(low, months) > high:
        months -= 1
    rest = (high - _months_on(low, months)).days
    years, rest_months = divmod(months, 12)
    return Difference(
        days=(last - first).days,
        business_days=_business_days(first, last, is_free),
        years=sign * years,
        months=sign * rest_months,
        rest_days=sign * rest,
        seconds=seconds,
    )


def _business_days(first: date, last: date, is_free: IsFree) -> int | None:
    days = abs((last - first).days)
    if days > BUSINESS_DAYS_MAX:
        return None
    step = 1 if first <= last else -1
    return step * sum(is_free(first + timedelta(days=step * n)) is None for n in range(1, days + 1))


def _months_on(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _day(value: datetime | date) -> date:
    return value.date() if isinstance(value, datetime) else value
