"""A cursor that no page gave is refused, also one whose place no table takes."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import orjson
import pytest

from wayline.tracing.errors import BadCursor
from wayline.tracing.handlers.tool_use import read_place
from wayline.tracing.views import row_views, span_statements

AT = "2026-01-01T00:00:00+00:00"
WRONG_MOMENTS = ("now", "2026-01-01T00:00:00", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00")


def encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize("at", WRONG_MOMENTS)
def test_a_moment_that_no_page_gave_is_refused(at: str):
    with pytest.raises(BadCursor):
        row_views.after_cursor(encoded(f"{at} j1"), "newest")
    with pytest.raises(BadCursor):
        span_statements.after_cursor(encoded(f"{at} t1 s1"))
    with pytest.raises(BadCursor):
        read_place(encoded(orjson.dumps([at, "j1", 1, 0]).decode()))


@pytest.mark.parametrize(
    "place", ["j\x00", "j1 dearest NaN", "j1 dearest 1e999999", "j1 dearest 1e-999999", "j1 dearest "]
)
def test_a_place_among_jobs_that_no_table_takes_is_refused(place: str):
    with pytest.raises(BadCursor):
        row_views.after_cursor(encoded(f"{AT} {place}"), "dearest" if "dearest" in place else "newest")


@pytest.mark.parametrize("place", [["j\x00", 1, 0], ["j1", 2**31, 0], ["j1", -1, 0], ["j1", "x", 0]])
def test_a_place_among_calls_that_no_table_takes_is_refused(place: list[object]):
    with pytest.raises(BadCursor):
        read_place(encoded(orjson.dumps([AT, *place]).decode()))


def test_a_place_that_a_page_gave_is_read():
    _, at, job_id = row_views.after_cursor(encoded(f"{AT} j1"), "newest")
    cost, _, _ = row_views.after_cursor(encoded(f"{AT} j1 dearest 0.0000001"), "dearest")

    assert (at.isoformat(), job_id, str(cost)) == (AT, "j1", "1E-7")
    assert row_views.after_cursor(encoded(f"{AT} j1 oldest "), "oldest") == (None, at, "j1")
    assert span_statements.after_cursor(encoded(f"{AT} t1 s1"))[1:] == ("t1", "s1")
