"""Answer a question about dates: what to give for each operation, and what each tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from wayline.tool_registry.calculation.dates import (
    Offset,
    Unit,
    Weekday,
    first_business_day,
    moved,
    next_weekday,
    nth_weekday,
    period,
)
from wayline.tool_registry.calculation.differences import difference
from wayline.tool_registry.calculation.holiday_calendars import BusinessCalendar, business_calendar
from wayline.tool_registry.calculation.local_times import CannotCalculate, day_of, moment, zone


@dataclass(frozen=True, slots=True)
class DateQuestion:
    """The arguments of the tool `date_calculate`."""

    operation: str
    date: str = "now"
    end_date: str | None = None
    timezone: str = "UTC"
    to_timezones: list[str] = field(default_factory=list)
    years: int = 0
    months: int = 0
    weeks: int = 0
    days: int = 0
    business_days: int = 0
    hours: int = 0
    minutes: int = 0
    unit: Unit | None = None
    offset: int = 0
    weekday: Weekday | None = None
    nth: int = 1
    country: str | None = None
    region: str | None = None
    extra_holidays: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _ParsedQuestion:
    """A question with its dates and its calendar read."""

    question: DateQuestion
    start: datetime | date
    end: datetime | date | None
    business: BusinessCalendar
    notes: tuple[str | None, ...]
    """About the times that were given."""

    @property
    def day(self) -> date:
        return day_of(self.start)


def answer(question: DateQuestion, *, now: datetime) -> dict[str, Any]:
    """Return what a question asks for. Blocking where it needs holidays; raises CannotCalculate."""
    try:
        read = _parsed(question, now)
        found = _OPERATIONS[question.operation](read)
    except (ValueError, OverflowError):
        raise CannotCalculate("the result is outside of the years 1 to 9999") from None
    # Each once: two times may have the same.
    notes = dict.fromkeys(note for note in (*read.notes, found.pop("note", None)) if note)
    return found | ({"note": " ".join(notes)} if notes else {})


def _parsed(question: DateQuestion, now: datetime) -> _ParsedQuestion:
    in_zone = zone(question.timezone)
    start = moment(question.date, in_zone, now=now)
    end = moment(question.end_date, in_zone, now=now) if question.end_date is not None else None
    own = [day_of(moment(one, in_zone, now=now).value) for one in question.extra_holidays]
    return _ParsedQuestion(
        question,
        start=start.value,
        end=end.value if end else None,
        business=business_calendar(question.country, question.region, own),
        notes=(start.note, end.note if end else None),
    )


def _add(read: _ParsedQuestion) -> dict[str, Any]:
    asked = read.question
    offset = Offset(
        years=asked.years,
        months=asked.months,
        weeks=asked.weeks,
        days=asked.days,
        business_days=asked.business_days,
        hours=asked.hours,
        minutes=asked.minutes,
    )
    if offset == Offset():
        raise CannotCalculate("add needs an amount: years, months, weeks, days, business_days, hours or minutes")
    # "now" in whole days is a question about days.
    start = read.day if asked.date == "now" and not asked.hours and not asked.minutes else read.start
    end = moved(start, offset, read.business.why_free)
    notes = [end.note, read.business.note if asked.business_days else None]
    return {"result": _text(end.value), **_about(end.value), "note": " ".join(note for note in notes if note)}


def _difference(read: _ParsedQuestion) -> dict[str, Any]:
    if read.end is None:
        raise CannotCalculate("difference needs an end_date")
    found = difference(read.start, read.end, read.business.why_free)
    measured: dict[str, Any] = {"from": _text(read.start), "to": _text(read.end), "days": found.days}
    if found.business_days is not None:
        measured["business_days"] = found.business_days
    measured["in_parts"] = found.parts
    if found.seconds is not None:
        measured |= {"hours": round(found.seconds / 3600, 2), "seconds": found.seconds}
    return measured | {"note": read.business.note}


def _period(read: _ParsedQuestion) -> dict[str, Any]:
    if read.question.unit is None:
        raise CannotCalculate("period needs a unit: week, month, quarter or year")
    first, last = period(read.day, read.question.unit, offset=read.question.offset)
    earliest = first_business_day(first, last, read.business.why_free)
    latest = first_business_day(last, first, read.business.why_free)
    return {
        "first": _text(first),
        "last": _text(last),
        "first_business_day": _text(earliest) if earliest else None,
        "last_business_day": _text(latest) if latest else None,
        "days": (last - first).days + 1,
        "note": read.business.note,
    }


def _weekday(read: _ParsedQuestion) -> dict[str, Any]:
    asked = read.question
    if asked.weekday is None:
        raise CannotCalculate("weekday needs a weekday, such as friday")
    if asked.unit is None:
        found = next_weekday(read.day, asked.weekday, asked.nth)
    else:
        found = nth_weekday(*period(read.day, asked.unit, offset=asked.offset), asked.weekday, asked.nth)
    return {"result": _text(found), **_about(found)}


def _zones(read: _ParsedQuestion) -> dict[str, Any]:
    if not isinstance(read.start, datetime):
        raise CannotCalculate("zones needs a time: give date as 2026-03-31T14:30, or now")
    if not read.question.to_timezones:
        raise CannotCalculate("zones needs to_timezones, such as ['Asia/Tokyo', 'America/New_York']")
    here = read.start.utcoffset()
    times = []
    for name in read.question.to_timezones:
        there = read.start.astimezone(zone(name))
        ahead = (there.utcoffset() - here).total_seconds() / 3600  # type: ignore[operator]
        times.append({"timezone": name, "time": _text(there), "weekday": f"{there:%A}", "hours_ahead": round(ahead, 2)})
    return {"time": _text(read.start), "times": times}


def _describe(read: _ParsedQuestion) -> dict[str, Any]:
    day = read.day
    year, week, _ = day.isocalendar()
    free = read.business.why_free(day)
    return {
        "date": _text(read.start),
        **_about(read.start),
        "iso_week": f"{year}-W{week:02}",
        "day_of_year": day.timetuple().tm_yday,
        "quarter": (day.month + 2) // 3,
        "business_day": free is None,
        **({"free_because": free} if free else {}),
        "note": read.business.note,
    }


def _holidays(read: _ParsedQuestion) -> dict[str, Any]:
    if read.question.country is None:
        raise CannotCalculate("holidays needs a country, such as CH")
    first, last = (read.day, day_of(read.end)) if read.end is not None else period(read.day, "year")
    found = read.business.holidays(first, last)
    listed = [{"date": _text(day), "weekday": f"{day:%A}", "name": name} for day, name in found.items()]
    return {"from": _text(first), "to": _text(last), "holidays": listed, "note": read.business.note}


_OPERATIONS: Mapping[str, Callable[[_ParsedQuestion], dict[str, Any]]] = MappingProxyType(
    {
        "add": _add,
        "difference": _difference,
        "period": _period,
        "weekday": _weekday,
        "zones": _zones,
        "describe": _describe,
        "holidays": _holidays,
    }
)


def _about(value: datetime | date) -> dict[str, str]:
    return {"weekday": f"{value:%A}"}


def _text(value: datetime | date) -> str:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value.isoformat()
