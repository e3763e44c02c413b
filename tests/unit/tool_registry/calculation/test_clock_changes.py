"""Times around a change of the clocks: what passes is measured, and a doubtful time is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.tool_registry.calculation.date_questions import DateQuestion, answer

NOW = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
"""In Zurich the second 02:30 of the night in which clocks go back."""


def ask(operation: str, **arguments: Any) -> dict[str, Any]:
    return answer(DateQuestion(operation, **{"timezone": "Europe/Zurich", **arguments}), now=NOW)


@pytest.mark.parametrize(
    ("date", "end_date", "hours"),
    [
        ("2026-03-28T12:00", "2026-03-29T12:00", 23),
        ("2026-03-29T01:30", "2026-03-29T03:30", 1),
        ("2026-10-24T12:00", "2026-10-25T12:00", 25),
        ("2026-10-25T12:00", "2026-10-24T12:00", -25),
        ("2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", 1),
    ],
)
def test_hours_are_those_that_pass_across_a_clock_change(date: str, end_date: str, hours: float):
    found = ask("difference", date=date, end_date=end_date)

    assert (found["hours"], found["seconds"]) == (hours, hours * 3600)


@pytest.mark.parametrize(
    ("date", "end_date", "days", "parts"),
    [
        ("2026-01-01T23:00", "2026-01-02T01:00", 0, (0, 0, 0, 2, 0, 0)),
        ("2026-01-02T01:00", "2026-01-01T23:00", 0, (0, 0, 0, -2, 0, 0)),
        ("2026-01-31T12:00", "2026-03-31T11:59:30", 58, (0, 1, 30, 23, 59, 30)),
        ("2024-02-29T06:00", "2026-03-31T18:30", 761, (2, 1, 2, 12, 30, 0)),
        ("2026-03-28T12:00", "2026-03-29T12:00", 1, (0, 0, 1, 0, 0, 0)),
        ("2026-03-28T02:30", "2026-03-29T03:00", 0, (0, 0, 0, 23, 30, 0)),
    ],
)
def test_parts_of_two_times_count_whole_days_and_hours(date: str, end_date: str, days: int, parts: tuple[int, ...]):
    found = ask("difference", date=date, end_date=end_date)

    assert found["days"] == days
    assert tuple(found["in_parts"].values()) == parts


def test_a_time_that_clocks_skip_is_moved_and_told():
    found = ask("add", date="2026-03-28T02:30", days=1)

    assert found == {
        "result": "2026-03-29T03:30:00+02:00",
        "weekday": "Sunday",
        "note": "2026-03-29T02:30 does not exist in Europe/Zurich, where clocks go forward: "
        "2026-03-29T03:30:00+02:00 is taken.",
    }


def test_a_time_that_comes_twice_is_the_first_and_told():
    found = ask("zones", date="2026-10-25T02:30", to_timezones=["UTC"])

    assert found["times"][0]["time"] == "2026-10-25T00:30:00+00:00"
    assert found["note"] == (
        "2026-10-25T02:30 comes twice in Europe/Zurich, where clocks go back: 2026-10-25T02:30:00+02:00 is taken, "
        "not 2026-10-25T02:30:00+01:00."
    )


def test_an_offset_tells_a_time_that_comes_twice_apart():
    found = ask("add", date="2026-10-25T02:30+01:00", hours=1)

    assert found == {"result": "2026-10-25T03:30:00+01:00", "weekday": "Sunday"}


def test_hours_from_the_second_of_two_times_start_there():
    assert ask("add", minutes=10) == {"result": "2026-10-25T02:40:00+01:00", "weekday": "Sunday"}
