"""Read dates and times, and mark those that a change of the clocks leaves out or brings twice."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


class CannotCalculate(Exception):
    """What was asked cannot be calculated; the text says what to give instead."""


class Moment(NamedTuple):
    """A date or a time, and what to know about it."""

    value: datetime | date
    note: str | None = None


def zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name. Raises CannotCalculate."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CannotCalculate(f"{name!r} is no IANA time zone; Europe/Zurich and UTC are") from None


def moment(text: str, in_zone: ZoneInfo, *, now: datetime) -> Moment:
    """Read `today`, `now`, a date or a time; a time without an offset is in the given zone. Raises CannotCalculate."""
    word = text.strip().lower()
    if word == "now":
        return Moment(now.astimezone(in_zone))
    if word in ("today", "tomorrow", "yesterday"):
        ahead = timedelta(days={"tomorrow": 1, "yesterday": -1}.get(word, 0))
        return Moment(now.astimezone(in_zone).date() + ahead)
    try:
        if len(word) <= 10:
            return Moment(date.fromisoformat(text.strip()))
        read = datetime.fromisoformat(text.strip())
    except ValueError:
        raise CannotCalculate(
            f"{text!r} is no date: give it as 2026-03-31, as 2026-03-31T14:30 or with an offset "
            "(2026-03-31T14:30+02:00), or say now, today, tomorrow or yesterday"
        ) from None
    return Moment(*on_the_clock(read.replace(tzinfo=in_zone))) if read.tzinfo is None else Moment(read)


def on_the_clock(shown: datetime) -> tuple[datetime, str | None]:
    """Return the moment at which a zone's clocks show a time, and a note where they never do, or twice."""
    taken = through_utc(shown)
    written, place = f"{shown:%Y-%m-%dT%H:%M}", shown.tzinfo
    if taken.replace(tzinfo=None) != shown.replace(tzinfo=None):
        return taken, f"{written} does not exist in {place}, where clocks go forward: {taken.isoformat()} is taken."
    second = shown.replace(fold=1)
    if second.utcoffset() == taken.utcoffset():
        return taken, None
    return taken, (
        f"{written} comes twice in {place}, where clocks go back: {taken.isoformat()} is taken, "
        f"not {second.isoformat()}."
    )


def through_utc(time: datetime, later: timedelta = timedelta()) -> datetime:
    """Return a time so much later in the same zone: an hour is an hour, also in a night when clocks are changed."""
    return (time.astimezone(UTC) + later).astimezone(time.tzinfo)


def day_of(value: datetime | date) -> date:
    """Return the day of a date or a time."""
    return value.date() if isinstance(value, datetime) else value
