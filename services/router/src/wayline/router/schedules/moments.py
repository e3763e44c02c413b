"""When a schedule fires, and what a router does about a moment that has come; pure, the clock is an argument."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from wayline.contracts.errors import Reject
from wayline.contracts.schedules import ScheduleConfig

FIELDS = 5
MOMENTS_COMPARED = 500
"""Of a cron expression, when the shortest time between two of them is looked for."""
ON_TIME = timedelta(seconds=60)
"""A moment that is looked at within this time was not missed: a router may just have been restarted."""

_CRON = re.compile(r"[0-9A-Za-z*/,#\- ]+")


def moments(config: ScheduleConfig, *, after: datetime) -> Iterator[datetime]:
    """Yield the moments of a schedule later than `after`, in UTC, one after the other. Raises Reject."""
    if config.at is not None:
        if config.at > after:
            yield config.at
        return
    assert config.cron is not None
    if not _CRON.fullmatch(config.cron) or len(config.cron.split()) != FIELDS:
        raise _no_cron(config.cron, "give five fields")
    last = after
    try:
        for local in CronSim(config.cron, after.astimezone(_zone(config.timezone))):
            moment = local.astimezone(UTC)
            # An hour that comes twice is passed twice: a moment of its first time may lie before the second.
            if moment > last:
                yield moment
                last = moment
    except CronSimError as error:
        raise _no_cron(config.cron, str(error)) from None
    except OverflowError:
        # The calendar ends with the year 9999.
        return


def _no_cron(cron: str, why: str) -> Reject:
    return Reject(
        f"cron is {cron!r}: {why}; it has minute, hour, day of month, month and day of week, such as '0 7 * * MON-FRI'",
        code="invalid_cron",
        status=422,
    )


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Reject(
            f"timezone is {name!r}: use an IANA name such as Europe/Berlin", code="unknown_timezone", status=422
        ) from None


def next_moment(config: ScheduleConfig, *, after: datetime) -> datetime | None:
    """Return the first moment later than `after`; None: there is none."""
    return next(moments(config, after=after), None)


def first_moment(config: ScheduleConfig, *, now: datetime, least_interval: timedelta) -> datetime | None:
    """Return the first moment of a schedule that is saved now; None: it is disabled.

    Raises Reject for what could never fire, or would fire too often.
    """
    coming = list(islice(moments(config, after=now), MOMENTS_COMPARED))
    if not config.enabled:
        return None
    if not coming and config.at is not None:
        raise Reject(
            f"at is {config.at.isoformat()}, which is over: give a moment that comes", code="at_in_the_past", status=422
        )
    if not coming:
        raise Reject(
            f"cron is {config.cron!r}, which has no moment in 50 years: correct its day or month",
            code="invalid_cron",
            status=422,
        )
    shortest = min((later - earlier for earlier, later in pairwise(coming)), default=None)
    if shortest is not None and shortest < least_interval:
        raise Reject(
            f"cron is {config.cron!r}, which fires every {shortest.total_seconds():g} s: at least "
            f"{least_interval.total_seconds():g} s must lie between two firings",
            code="too_frequent",
            status=422,
        )
    return coming[0]


@dataclass(frozen=True, slots=True)
class FiringDecision:
    """What is done about a moment that has come."""

    due_at: datetime
    next_at: datetime | None
    missed: int = 0
    """Earlier moments that it stands for, too."""
    skipped: str = ""
    """Why nothing is submitted; empty: the job is."""


def decide(config: ScheduleConfig, due: datetime, *, now: datetime, missed_max: timedelta) -> FiringDecision:
    """Decide about a planned moment that has come: fire for the newest moment that has passed, once, or skip.

    Moments older than `missed_max` are neither fired for nor counted. Raises Reject.
    """
    newest, missed, following = due, 0, None
    if due < now - missed_max:
        first = next_moment(config, after=now - missed_max)
        newest = first if first is not None and first <= now else due
    for moment in moments(config, after=newest):
        if moment > now:
            following = moment
            break
        newest, missed = moment, missed + 1
    late = now - newest
    skipped = ""
    if late > missed_max:
        skipped = f"missed by {late}: no router ran, and it is made up for within {missed_max} only"
    elif late > ON_TIME and config.missed == "skip":
        skipped = f"missed by {late}: no router ran, and missed is 'skip'"
    return FiringDecision(newest, following, missed, skipped)


def asks_for_overlap(config: ScheduleConfig, decision: FiringDecision) -> bool:
    """Return whether a moment is fired for only where the job of the firing before has ended."""
    return not decision.skipped and config.overlap == "skip"


def without_overlap(decision: FiringDecision, *, running: str | None) -> FiringDecision:
    """Return the decision where the firing before has left a `running` job: the moment is skipped."""
    if running is None:
        return decision
    return replace(decision, skipped=f"job {running!r} of the firing before has not ended")
