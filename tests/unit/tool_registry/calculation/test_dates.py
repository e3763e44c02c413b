"""Dates: arithmetic, differences, periods, weekdays, zones, business days and holidays."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from wayline.tool_registry.calculation.date_questions import DateQuestion, answer
from wayline.tool_registry.calculation.holiday_calendars import WEEKENDS_ONLY
from wayline.tool_registry.calculation.local_times import CannotCalculate

NOW = datetime(2026, 3, 31, 22, 30, tzinfo=UTC)
"""A Tuesday; in Zurich it is Wednesday already."""


def ask(operation: str, **arguments: Any) -> dict[str, Any]:
    return answer(DateQuestion(operation, **arguments), now=NOW)


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ({"days": 1}, "2026-04-01"),
        ({"date": "today", "timezone": "Europe/Zurich"}, "2026-04-02"),
        ({"date": "2026-01-31", "months": 1, "days": 0}, "2026-02-28"),
        ({"date": "2024-02-29", "years": 1, "days": 0}, "2025-02-28"),
        ({"date": "2026-03-31", "months": -1, "days": 0}, "2026-02-28"),
        ({"date": "2026-12-15", "months": 14, "days": 0}, "2028-02-15"),
        ({"date": "2026-03-31", "weeks": 2, "days": -1}, "2026-04-13"),
        ({"date": "now", "hours": 3, "days": 0}, "2026-04-01T01:30:00+00:00"),
        # The night in which clocks go forward: an hour is an hour, a day is a day.
        ({"date": "2026-03-29T01:30", "timezone": "Europe/Zurich", "hours": 1, "days": 0}, "2026-03-29T03:30:00+02:00"),
        ({"date": "2026-03-28T12:00", "timezone": "Europe/Zurich"}, "2026-03-29T12:00:00+02:00"),
    ],
)
def test_an_amount_is_added_to_a_date(arguments: dict[str, Any], result: str):
    assert ask("add", **{"days": 1, **arguments})["result"] == result


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ({"date": "2026-03-27", "business_days": 1}, "2026-03-30"),
        ({"date": "2026-03-30", "business_days": -1}, "2026-03-27"),
        ({"date": "2026-03-28", "business_days": 1}, "2026-03-30"),
        ({"date": "today", "business_days": 3}, "2026-04-03"),
        # Good Friday and Easter Monday.
        ({"date": "2026-04-01", "business_days": 3, "country": "CH", "region": "ZH"}, "2026-04-08"),
        ({"date": "2026-12-23", "business_days": 1, "extra_holidays": ["2026-12-24"]}, "2026-12-25"),
        ({"date": "2026-07-02", "business_days": 1, "country": "US", "region": "NY"}, "2026-07-06"),
        # Friday and Saturday are Saudi Arabia's weekend.
        ({"date": "2026-06-04", "business_days": 1, "country": "SA"}, "2026-06-07"),
    ],
)
def test_business_days_pass_over_weekends_and_holidays(arguments: dict[str, Any], result: str):
    found = ask("add", **arguments)

    assert found["result"] == result
    assert ("note" in found) == ("country" not in arguments)


def test_a_difference_is_told_in_days_and_in_parts():
    assert ask("difference", date="2024-02-29", end_date="2026-03-31") == {
        "from": "2024-02-29",
        "to": "2026-03-31",
        "days": 761,
        "business_days": 543,
        "in_parts": {"years": 2, "months": 1, "days": 2},
        "note": WEEKENDS_ONLY,
    }


def test_a_difference_backwards_is_below_zero():
    found = ask("difference", date="2026-03-31", end_date="2026-03-01", country="CH")

    assert (found["days"], found["business_days"], found["in_parts"]) == (
        -30,
        -21,
        {"years": 0, "months": 0, "days": -30},
    )


def test_times_in_two_zones_are_compared_as_moments():
    found = ask("difference", date="2026-03-31T09:00+02:00", end_date="2026-03-31T09:00-04:00")

    assert (found["hours"], found["seconds"], found["days"]) == (6, 21_600, 0)


@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        ({"unit": "month"}, "2026-03-01", "2026-03-31"),
        ({"unit": "month", "offset": 1}, "2026-04-01", "2026-04-30"),
        ({"unit": "month", "offset": -13}, "2025-02-01", "2025-02-28"),
        ({"unit": "quarter", "offset": 1}, "2026-04-01", "2026-06-30"),
        ({"unit": "year", "offset": -1}, "2025-01-01", "2025-12-31"),
        ({"unit": "week"}, "2026-03-30", "2026-04-05"),
    ],
)
def test_a_period_has_its_first_and_last_day(arguments: dict[str, Any], first: str, last: str):
    found = ask("period", **arguments)

    assert (found["first"], found["last"]) == (first, last)


def test_a_period_tells_its_last_business_day():
    found = ask("period", date="2026-05-10", unit="month", country="US")

    assert (found["last"], found["last_business_day"]) == ("2026-05-31", "2026-05-29")


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ({"weekday": "friday"}, "2026-04-03"),
        ({"weekday": "tuesday"}, "2026-04-07"),
        ({"weekday": "tuesday", "nth": -1}, "2026-03-24"),
        ({"weekday": "monday", "nth": -2}, "2026-03-23"),
        ({"weekday": "friday", "nth": 3, "unit": "month"}, "2026-03-20"),
        ({"weekday": "monday", "nth": -1, "unit": "month", "offset": 2}, "2026-05-25"),
        ({"weekday": "sunday", "nth": 1, "unit": "year", "offset": 1}, "2027-01-03"),
    ],
)
def test_a_weekday_is_found_in_a_period_or_after_a_date(arguments: dict[str, Any], result: str):
    assert ask("weekday", **arguments)["result"] == result


def test_a_moment_is_told_in_other_zones():
    found = ask(
        "zones", date="2026-03-31T09:00", timezone="Europe/Zurich", to_timezones=["Asia/Kolkata", "America/New_York"]
    )

    assert [(one["time"], one["hours_ahead"]) for one in found["times"]] == [
        ("2026-03-31T12:30:00+05:30", 3.5),
        ("2026-03-31T03:00:00-04:00", -6),
    ]


def test_a_day_is_described():
    found = ask("describe", date="2026-04-03", country="CH", region="ZH")

    assert found == {
        "date": "2026-04-03",
        "weekday": "Friday",
        "iso_week": "2026-W14",
        "day_of_year": 93,
        "quarter": 2,
        "business_day": False,
        "free_because": "Good Friday",
    }


def test_holidays_are_listed_by_their_names():
    found = ask("holidays", date="2026-04-01", end_date="2026-05-01", country="ch", region="zh")

    assert [(one["date"], one["name"]) for one in found["holidays"]] == [
        ("2026-04-03", "Good Friday"),
        ("2026-04-06", "Easter Monday"),
        ("2026-05-01", "Labor Day"),
    ]


@pytest.mark.parametrize(
    ("operation", "arguments", "hint"),
    [
        ("add", {}, "needs an amount"),
        ("add", {"date": "31.3.2026", "days": 1}, "2026-03-31"),
        ("add", {"date": "2026-02-30", "days": 1}, "is no date"),
        ("add", {"date": "2026-03-31", "hours": 1}, "need a time"),
        ("add", {"years": 9_000}, "years 1 to 9999"),
        ("add", {"days": 999_999_999}, "years 1 to 9999"),
        ("add", {"business_days": 1_000_000}, "at most"),
        ("add", {"date": "9999-12-30", "business_days": 10}, "years 1 to 9999"),
        ("add", {"days": 1, "country": "Switzerland"}, "ISO code"),
        ("add", {"days": 1, "country": "CH", "region": "XX"}, "no region"),
        ("add", {"days": 1, "region": "ZH"}, "needs its country"),
        ("difference", {}, "end_date"),
        ("period", {}, "unit"),
        ("period", {"unit": "year", "offset": -5_000}, "years 1 to 9999"),
        ("weekday", {}, "weekday"),
        ("weekday", {"weekday": "friday", "nth": 0}, "nth"),
        ("weekday", {"weekday": "friday", "nth": 6, "unit": "month"}, "there are 4 Fridays"),
        ("zones", {"to_timezones": []}, "to_timezones"),
        ("zones", {"date": "today", "to_timezones": ["UTC"]}, "needs a time"),
        ("zones", {"to_timezones": ["Mars"]}, "no IANA time zone"),
        ("holidays", {}, "country"),
        ("holidays", {"date": "2026-01-01", "end_date": "2036-01-01", "country": "CH"}, "three years"),
        ("describe", {"timezone": "../etc/passwd"}, "no IANA time zone"),
    ],
)
def test_what_is_missing_or_wrong_is_said(operation: str, arguments: dict[str, Any], hint: str):
    with pytest.raises(CannotCalculate, match=hint):
        ask(operation, **arguments)


def test_no_end_of_time_is_a_defect():
    for start in (date.min, date.max):
        for operation, arguments in (
            ("period", {"unit": "week"}),
            ("weekday", {"weekday": "friday"}),
            ("weekday", {"weekday": "friday", "nth": -1}),
            ("describe", {}),
            ("holidays", {"country": "CH"}),
            ("zones", {"to_timezones": ["Asia/Tokyo", "America/New_York"], "date": f"{start}T12:00"}),
        ):
            try:
                ask(operation, **{"date": start.isoformat(), **arguments})
            except CannotCalculate as error:
                assert str(error)
