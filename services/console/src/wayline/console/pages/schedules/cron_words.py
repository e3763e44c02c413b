"""A cron expression in words, and its next moments, by the library that the router plans with. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from wayline.console.render.formats import moment

CRON_MAX_CHARS: Final = 200
FIELDS: Final = 5
NEXT_SHOWN: Final = 5


class WrongTime(ValueError):
    """What no schedule can fire by."""


def zone_named(name: str) -> ZoneInfo:
    """Return a zone. Raises WrongTime."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise WrongTime(f"{name!r} is no time zone: use a name such as Europe/Berlin") from None


def in_words(cron: str) -> str:
    """Say when a cron expression fires; the expression itself where that cannot be said."""
    try:
        return _parsed(cron, datetime(2026, 1, 1, tzinfo=UTC)).explain()
    except WrongTime:
        return cron


def next_moments(cron: str, zone: ZoneInfo, now: datetime) -> list[datetime]:
    """Return the next moments of a cron expression, by a zone's clock. Raises WrongTime."""
    found = _later(_parsed(cron, now.astimezone(zone)), now)
    try:
        return list(islice(found, NEXT_SHOWN))
    except (CronSimError, OverflowError):
        raise WrongTime(f"{cron!r} never fires") from None


def _later(found: Iterator[datetime], now: datetime) -> Iterator[datetime]:
    """Yield moments that are later than the one before: an hour that comes twice is passed twice."""
    last = now
    for one in found:
        if one.astimezone(UTC) > last:
            last = one.astimezone(UTC)
            yield one


def _parsed(cron: str, at: datetime) -> CronSim:
    if len(cron) > CRON_MAX_CHARS or len(cron.split()) != FIELDS:
        raise WrongTime("give five fields: minute, hour, day of month, month, day of week, such as 0 7 * * MON-FRI")
    try:
        return CronSim(cron, at)
    except CronSimError as error:
        raise WrongTime(f"{cron!r}: {error}") from None


def by_clock(at: str | None, zone_name: str) -> str:
    """Write a moment by the clock of a zone; by UTC where there is no such zone here."""
    then = moment(at)
    if then is None:
        return ""
    try:
        zone = zone_named(zone_name)
    except WrongTime:
        zone = ZoneInfo("UTC")
    return then.astimezone(zone).strftime("%a %Y-%m-%d %H:%M %Z")
