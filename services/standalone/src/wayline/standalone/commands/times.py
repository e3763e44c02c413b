"""Times in arguments: an age such as 7d, or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGE = re.compile(r"(\d{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def past_time(text: str, now: datetime) -> datetime:
    """Read `7d`, `12h`, `30m` or `2w` before now, or a date; UTC where it names no offset. Raises ValueError."""
    return _read_time(text, now, sign=-1)


def future_time(text: str, now: datetime) -> datetime:
    """Read a span from now on, or a date. Raises ValueError."""
    return _read_time(text, now, sign=1)


def _read_time(text: str, now: datetime, *, sign: int) -> datetime:
    age = _AGE.fullmatch(text)
    try:
        if age:
            return now + sign * timedelta(**{_UNITS[age[2]]: int(age[1])})
        when = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is neither an age like 7d or 12h nor a date like 2026-11-01") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
