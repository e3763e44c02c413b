"""Business days of countries: their weekends, working weekends, regions and the years that are known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.tool_registry.calculation.date_questions import DateQuestion, answer
from wayline.tool_registry.calculation.local_times import CannotCalculate

NOW = datetime(2026, 3, 31, 22, 30, tzinfo=UTC)


def ask(operation: str, **arguments: Any) -> dict[str, Any]:
    return answer(DateQuestion(operation, **arguments), now=NOW)


@pytest.mark.parametrize(
    ("country", "date", "working"),
    [
        # A Saturday and a Sunday on which China works.
        ("CN", "2026-10-10", True),
        ("CN", "2024-02-04", True),
        ("CN", "2026-10-11", False),
        # Friday was weekend in the Emirates before 2022.
        ("AE", "2021-01-08", False),
        ("AE", "2023-01-13", True),
    ],
)
def test_working_weekends_and_former_weekends_count(country: str, date: str, working: bool):
    assert ask("describe", date=date, country=country)["business_day"] is working


def test_a_business_day_may_be_a_working_saturday():
    assert ask("add", date="2026-10-09", business_days=1, country="CN") == {
        "result": "2026-10-10",
        "weekday": "Saturday",
    }


@pytest.mark.parametrize("operation", ["describe", "period", "difference", "holidays"])
def test_a_country_without_its_region_is_told(operation: str):
    found = ask(operation, date="2026-08-01", end_date="2026-08-31", unit="month", country="GB")

    assert found["note"] == (
        "Only holidays of all of GB are counted: give a region, such as ENG, NIR, SCT, for its own."
    )


@pytest.mark.parametrize("region", ["ENG", "eng", "England", " england ", "GB-ENG"])
def test_a_region_is_known_by_its_code_and_name(region: str):
    found = ask("describe", date="2026-08-31", country="GB", region=region)

    assert (found["free_because"], "note" in found) == ("Late Summer Bank Holiday", False)


def test_a_region_is_known_without_its_accents():
    assert ask("describe", date="2026-01-02", country="CH", region="zurich") == ask(
        "describe", date="2026-01-02", country="CH", region="Z\u00fcrich"
    )


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("holidays", {"date": "2150-01-01"}),
        ("holidays", {"date": "2100-06-01", "end_date": "2101-06-01"}),
        ("describe", {"date": "2150-01-01"}),
        ("add", {"date": "2100-12-30", "business_days": 5}),
    ],
)
def test_years_whose_holidays_are_not_known_are_refused(operation: str, arguments: dict[str, Any]):
    with pytest.raises(CannotCalculate, match="are known from 1801 to 2100"):
        ask(operation, country="CH", **arguments)


def test_holidays_to_an_earlier_day_are_refused():
    with pytest.raises(CannotCalculate, match="2026-01-01 is before 2026-12-31, swap them"):
        ask("holidays", date="2026-12-31", end_date="2026-01-01", country="CH")


def test_a_period_without_business_days_has_none():
    found = ask("period", date="2026-02-18", unit="week", country="CN")

    assert (found["first_business_day"], found["last_business_day"]) == (None, None)
