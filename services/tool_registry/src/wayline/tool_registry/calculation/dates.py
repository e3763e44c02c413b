"""Calculate with dates: arithmetic, ends of periods, weekdays, business days."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from wayline.tool_registry.calculation.local_times import (
    CannotCalculate,
    Moment,
    day_of,
    on_the_clock,
    through_utc,
)

Unit = Literal["week", "month", "quarter", "year"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: tuple[Weekday, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
BUSINESS_DAYS_MAX = 20_000
NTH_MAX = 53

IsFree = Callable[[date], str | None]
"""Returns why a day is no business day: its holiday, or that it is a weekend; None for a business day."""


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


def moved(start: datetime | date, offset: Offset, is_free: IsFree) -> Moment:
    """Go from a date by an offset: a day that a month does not have becomes its last one.

    Raises CannotCalculate, and ValueError or OverflowError beyond the calendar.
    """
    day = months_on(day_of(start), offset.years * 12 + offset.months)
    day = in_business_days(day + timedelta(weeks=offset.weeks, days=offset.days), offset.business_days, is_free)
    clock = timedelta(hours=offset.hours, minutes=offset.minutes, seconds=offset.seconds)
    if not isinstance(start, datetime):
        if clock:
            raise CannotCalculate(
                "hours, minutes and seconds need a time to start from, such as 2026-03-31T14:30 or now"
            )
        return Moment(day)
    if day == start.date():
        # The same moment, also where clocks show its time twice.
        return Moment(through_utc(start, clock))
    end, note = on_the_clock(datetime.combine(day, start.time(), start.tzinfo))
    return Moment(through_utc(end, clock), note)


def in_business_days(start: date, count: int, is_free: IsFree) -> date:
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


def first_business_day(begin: date, end: date, is_free: IsFree) -> date | None:
    """Return the first business day on the way from one day to another, or back; None where there is none."""
    step = 1 if begin <= end else -1
    days = (begin + timedelta(days=step * n) for n in range(abs((end - begin).days) + 1))
    return next((day for day in days if is_free(day) is None), None)


def period(day: date, unit: Unit, *, offset: int = 0) -> tuple[date, date]:
    """Return the first and the last day of the period that a day is in, or of one so many periods on."""
    if unit == "week":
        first = day - timedelta(days=day.weekday()) + timedelta(weeks=offset)
        return first, first + timedelta(days=6)
    length = {"month": 1, "quarter": 3, "year": 12}[unit]
    begin = (day.year * 12 + day.month - 1) // length * length + offset * length
    return months_on(date(1, 1, 1), begin - 12), _last_day(begin + length - 1)


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


def months_on(day: date, months: int) -> date:
    """Return the day so many months on, or the last one of a month that does not have it."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
