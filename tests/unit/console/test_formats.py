"""How money, times and strangers' characters read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wayline.console.render.formats import age, duration, exact_usd, many, one_line, usd, visible

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (None, "unknown"),
        ("0", "$0"),
        ("0.00000423", "$0.00000423"),
        ("0.0123", "$0.0123"),
        ("0.12345", "$0.1234"),
        ("0.5", "$0.50"),
        ("0.99999", "$1.00"),
        ("12345.678", "$12,345.68"),
        ("-0.0000527", "-$0.0000527"),
        ("-2.5", "-$2.50"),
        ("NaN", "unknown"),
        ("many", "unknown"),
    ],
)
def test_money_is_short_and_unknown_is_not_zero(amount: str | None, shown: str):
    assert usd(amount) == shown


def test_the_title_of_an_amount_has_all_its_digits():
    assert [exact_usd("0.123456789"), exact_usd("-0.10")] == ["$0.123456789", "-$0.1"]
    assert exact_usd(None) == "its price is not known"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5, "5 s"), (400, "6 min"), (9_000, "2 h"), (400_000, "4 d"), (-3, "0 s")]
)
def test_an_age_has_one_unit(seconds: int, shown: str):
    assert age((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (None, "running"),
        (0.34, "0.3 ms"),
        (36.3, "36 ms"),
        (1500, "1.5 s"),
        (61_000, "1 min 1 s"),
        (7_260_000, "2 h 1 min"),
    ],
)
def test_a_duration_is_written_in_its_own_units(ms: float | None, shown: str):
    assert duration(ms) == shown


def test_characters_that_hide_others_are_named():
    assert visible("a\u202eb\x1b[31m\u200f") == "a⟦U+202E⟧b⟦U+001B⟧[31m⟦U+200F⟧"
    assert visible("tab\tand\nline, שלום") == "tab\tand\nline, שלום"


def test_one_line_is_bounded():
    assert one_line("a\n" * 500, 10) == "a a a a a…"


def test_one_thing_is_not_several():
    assert [many(1, "tool"), many(0, "tool"), many(2_000, "memory", "memories")] == [
        "1 tool",
        "0 tools",
        "2,000 memories",
    ]
