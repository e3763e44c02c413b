"""What `--since` takes."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from wayline.standalone.commands.moments import moment

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("24h", NOW - timedelta(hours=24)),
        ("7d", NOW - timedelta(days=7)),
        (" 2w ", NOW - timedelta(days=14)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T10:30", datetime(2026, 11, 1, 10, 30, tzinfo=UTC)),
        ("2026-11-01T10:30:00+02:00", datetime(2026, 11, 1, 10, 30, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_so_long_ago_and_dates_are_understood(said: str, meant: datetime):
    assert moment(said, now=NOW) == meant


@pytest.mark.parametrize("said", ["", "yesterday", "7", "-7d", "7m", "999999w", "2026-13-01"])
def test_anything_else_is_answered_with_what_is_understood(said: str):
    with pytest.raises(ValueError, match=r"is no time: say 24h, 7d, 2w, or a date such as 2026-11-22"):
        moment(said, now=NOW)
