"""What `--since` takes, wherever there is one."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from wayline.standalone.commands.times import past_time

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("24h", NOW - timedelta(hours=24)),
        ("7d", NOW - timedelta(days=7)),
        ("30m", NOW - timedelta(minutes=30)),
        ("2w", NOW - timedelta(days=14)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T10:30", datetime(2026, 11, 1, 10, 30, tzinfo=UTC)),
        ("2026-11-01T10:30:00+02:00", datetime(2026, 11, 1, 10, 30, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_so_long_ago_and_dates_are_understood(text: str, meant: datetime):
    assert past_time(text, NOW) == meant


@pytest.mark.parametrize("text", ["", "yesterday", "7", "-7d", "999999w", "2026-13-01"])
def test_anything_else_is_answered_with_what_is_understood(text: str):
    with pytest.raises(ValueError, match=r"is neither an age like 7d or 12h nor a date like 2026-11-01"):
        past_time(text, NOW)
