"""A moment in the past as people say it: so long ago, or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGE = re.compile(r"(\d{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(said: str, now: datetime) -> datetime:
    """`7d`, `12h`, `30m`, `2w` before now, or a date; UTC where it names no offset. Raises ValueError."""
    age = _AGE.fullmatch(said)
    try:
        if age:
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        when = datetime.fromisoformat(said)
    except (ValueError, OverflowError):
        raise ValueError(f"{said!r} is neither an age like 7d or 12h nor a date like 2026-11-01") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
