"""A moment as people say it: so long ago, in so long, or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGE = re.compile(r"(\d{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(said: str, now: datetime) -> datetime:
    """`7d`, `12h`, `30m`, `2w` before now, or a date; UTC where it names no offset. Raises ValueError."""
    return _moment(said, now, sign=-1)


def time_to_come(said: str, now: datetime) -> datetime:
    """Read a moment, counting a span from now on. Raises ValueError."""
    return _moment(said, now, sign=1)


def _moment(said: str, now: datetime, *, sign: int) -> datetime:
    age = _AGE.fullmatch(said)
    try:
        if age:
            return now + sign * timedelta(**{_UNITS[age[2]]: int(age[1])})
        when = datetime.fromisoformat(said)
    except (ValueError, OverflowError):
        raise ValueError(f"{said!r} is neither an age like 7d or 12h nor a date like 2026-11-01") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
