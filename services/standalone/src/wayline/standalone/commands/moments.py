"""A moment in the past as people say it: so long ago, or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_AGO = re.compile(r"(\d{1,6})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def moment(said: str, *, now: datetime) -> datetime:
    """`7d`, `24h`, `2w`, or an ISO date with or without a time; UTC where no offset is given. Raises ValueError."""
    ago = _AGO.fullmatch(said.strip())
    try:
        if ago:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        at = datetime.fromisoformat(said.strip())
    except (ValueError, OverflowError):
        raise ValueError(f"{said!r} is no time: say 24h, 7d, 2w, or a date such as {now:%Y-%m-%d}") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
