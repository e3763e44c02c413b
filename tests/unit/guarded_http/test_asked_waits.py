"""How long a server asks to be left alone, in each form that HTTP has for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wayline.guarded_http import asked_wait_s

SERVERS = "Fri, 27 Nov 2026 16:00:00 GMT"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Fri, 27 Nov 2026 16:01:30 GMT", 90.0),
        ("Friday, 27-Nov-26 16:01:30 GMT", 90.0),
        ("Fri Nov 27 16:01:30 2026", 90.0),
        ("Fri, 27 Nov 2026 15:00:00 GMT", 0.0),
        ("-5", None),
        ("1.5", None),
        ("nan", None),
        ("9" * 20, None),
        ("soon", None),
        ("Fri, 99 Nov 2026 16:00:00 GMT", None),
        ("", None),
    ],
)
def test_a_retry_after_is_seconds_or_a_date(value: str, seconds: float | None):
    assert asked_wait_s({"retry-after": value, "date": SERVERS}) == seconds


def test_without_a_date_of_its_own_our_clock_counts():
    until = datetime.now(UTC) + timedelta(days=400)
    asked = asked_wait_s({"retry-after": f"{until:%a, %d %b %Y %H:%M:%S} GMT"})

    assert asked is not None and 399 < asked / 86_400 <= 400
