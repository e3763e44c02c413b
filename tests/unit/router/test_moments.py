"""When a schedule fires: over changes of the clock, after outages, and never for what could not be meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.errors import Reject
from wayline.contracts.schedules import ScheduleConfig
from wayline.router.schedules.moments import FiringDecision, decide, first_moment, moments

NOON = datetime(2026, 5, 6, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
JOB = {"agent": "assistant", "input": "go"}


def schedule(**fields: Any) -> ScheduleConfig:
    return ScheduleConfig.model_validate({"job": JOB, **fields})


def coming(cron: str, after: str, *, zone: str = "Europe/Berlin", n: int = 3) -> list[str]:
    """Return the next moments in UTC, without their seconds."""
    config = schedule(cron=cron, timezone=zone)
    found = islice(moments(config, after=datetime.fromisoformat(after)), n)
    return [moment.strftime("%d %H:%M") for moment in found]


def test_the_hour_left_out_in_spring_is_made_up_for():
    assert coming("30 2 * * *", "2026-03-28T00:00Z") == ["28 01:30", "29 01:00", "30 00:30"]


def test_an_hour_that_comes_twice_in_autumn_fires_once():
    assert coming("30 2 * * *", "2026-10-24T12:00Z") == ["25 00:30", "26 01:30", "27 01:30"]


def test_planning_within_the_repeated_hour_never_goes_back():
    # 01:10 UTC is 02:10 for the second time; 02:30 of the first time is over.
    assert coming("30 2 * * *", "2026-10-25T01:10Z", n=2) == ["26 01:30", "27 01:30"]


def test_every_quarter_of_an_hour_stays_one_over_both_changes():
    for day in ("2026-03-29", "2026-10-25"):
        found = list(islice(moments(schedule(cron="*/15 * * * *", timezone="Europe/Berlin"), after=at(day)), 24))
        assert {later - earlier for earlier, later in pairwise(found)} == {15 * MINUTE}


def at(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T00:00Z")


def test_the_same_cron_means_another_moment_in_another_zone():
    found = [coming("0 7 * * MON-FRI", "2026-05-08T12:00Z", zone=zone, n=1) for zone in ("UTC", "Asia/Kolkata")]

    assert found == [["11 07:00"], ["11 01:30"]]


PARTS = st.sampled_from(
    ["*", "*/5", "0", "30", "1-5", "L", "2", "5#5", "1L", "*/20", "29", "31", "FEB", "SUN", "x", ""]
)


@given(st.lists(PARTS, min_size=4, max_size=6), st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)))
def test_moments_always_come_later_or_the_cron_is_refused(parts: list[str], after: datetime):
    after = after.replace(tzinfo=UTC)
    try:
        found = list(islice(moments(schedule(cron=" ".join(parts), timezone="Europe/Berlin"), after=after), 5))
    except Reject as error:
        assert error.code == "invalid_cron"
        return
    assert [after, *found] == sorted({after, *found})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cron": "0 7 * *"}, "invalid_cron"),
        ({"cron": "0 0 7 * * *"}, "invalid_cron"),
        ({"cron": "61 7 * * *"}, "invalid_cron"),
        ({"cron": "0 0 30 2 *"}, "invalid_cron"),
        ({"cron": "@daily"}, "invalid_cron"),
        ({"cron": "0 7 * * *", "timezone": "Europe/Atlantis"}, "unknown_timezone"),
        ({"cron": "* * * * *"}, "too_frequent"),
        ({"at": "2026-05-06T11:59:59Z"}, "at_in_the_past"),
    ],
)
def test_what_could_not_be_meant_is_refused_with_its_code(fields: dict[str, Any], code: str):
    with pytest.raises(Reject) as refused:
        first_moment(schedule(**fields), now=NOON, least_interval=5 * MINUTE)

    assert (refused.value.code, refused.value.status) == (code, 422)


def test_a_disabled_schedule_is_checked_and_plans_nothing():
    assert first_moment(schedule(at="2020-01-01T00:00Z", enabled=False), now=NOON, least_interval=MINUTE) is None
    with pytest.raises(Reject):
        first_moment(schedule(cron="nonsense", enabled=False), now=NOON, least_interval=MINUTE)


def decided(due: datetime, *, now: datetime = NOON, missed_max: timedelta = DAY, **fields: Any) -> FiringDecision:
    return decide(schedule(**fields), due, now=now, missed_max=missed_max)


HOURLY = {"cron": "0 * * * *"}
HOUR = timedelta(hours=1)


def test_a_moment_that_has_just_come_fires_and_plans_the_next():
    assert decided(NOON, now=NOON + MINUTE / 2, **HOURLY) == FiringDecision(NOON, NOON + HOUR)


def test_missed_moments_fire_once_for_the_newest():
    now = NOON + 10 * MINUTE

    assert decided(NOON - 5 * HOUR, now=now, **HOURLY) == FiringDecision(NOON, NOON + HOUR, missed=5)


def test_missed_moments_are_skipped_where_that_is_chosen():
    found = decided(NOON - 5 * HOUR, now=NOON + 10 * MINUTE, missed="skip", **HOURLY)

    assert (found.due_at, found.next_at, found.missed) == (NOON, NOON + HOUR, 5)
    assert "missed by 0:10:00" in found.skipped


def test_a_restart_of_a_minute_misses_nothing():
    assert decided(NOON, now=NOON + MINUTE, missed="skip", **HOURLY).skipped == ""


def test_what_is_too_old_is_neither_fired_for_nor_counted():
    found = decided(NOON - 30 * DAY, now=NOON + 10 * MINUTE, missed_max=2 * HOUR, **HOURLY)
    alone = decided(NOON - 2 * DAY, at="2026-05-04T12:00Z")
    monthly = decided(NOON - 3 * DAY, cron="0 12 3 * *")

    assert found == FiringDecision(NOON, NOON + HOUR, missed=1)
    assert (alone.next_at, "missed by 2 days" in alone.skipped) == (None, True)
    assert (monthly.next_at, bool(monthly.skipped)) == (datetime(2026, 6, 3, 12, tzinfo=UTC), True)


@given(st.integers(0, 5_000), st.integers(0, 4_000))
def test_a_late_look_plans_a_moment_to_come(minutes: int, limit: int):
    now = NOON + minutes * MINUTE + timedelta(seconds=1)
    found = decided(NOON, now=now, missed_max=limit * MINUTE, cron="*/7 3-20 * * *", timezone="America/New_York")

    assert found.next_at is not None
    assert found.due_at <= now < found.next_at
    assert next(moments(schedule(cron="*/7 3-20 * * *", timezone="America/New_York"), after=now)) == found.next_at
