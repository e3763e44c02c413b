"""Where the spans of a trace stand on its time line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from wayline.console.render.waterfall import LEAST, WIDTH, waterfall

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def span(after_ms: float, ms: float | None, *children: dict[str, Any], status: str = "ok") -> dict[str, Any]:
    at = (NOW - timedelta(seconds=100) + timedelta(milliseconds=after_ms)).isoformat()
    return {"name": "s", "start": at, "duration_ms": ms, "status": status, "children": list(children)}


def test_rows_follow_the_tree_and_stand_by_time():
    found = waterfall(span(0, 100, span(50, 25, span(60, 5)), span(10, 20, status="error")), now=NOW)

    assert [(row.depth, row.x, row.width) for row in found.rows] == [
        (0, 0, 1000),
        (1, 100, 200),
        (1, 500, 250),
        (2, 600, 50),
    ]
    assert [row.failed for row in found.rows] == [False, True, False, False]
    assert found.total_ms == 100


def test_an_open_span_lasts_until_now():
    found = waterfall(span(0, None, span(50_000, 25_000)), now=NOW)

    assert (found.total_ms, found.rows[0].open, found.rows[1].x) == (100_000, True, 500)


def test_a_deep_trace_is_cut_and_says_so():
    tree = span(0, 1)
    for _ in range(5_000):
        tree = span(0, 1, tree)

    found = waterfall(tree, now=NOW)

    assert (len(found.rows), found.left_out) == (600, 4_401)


def test_no_trace_has_no_rows():
    assert waterfall(None, now=NOW).rows == ()


SPANS = st.recursive(
    st.builds(span, st.floats(0, 9e4), st.none() | st.floats(0, 9e4)),
    lambda inner: st.builds(
        lambda at, ms, children: span(at, ms, *children),
        st.floats(0, 9e4),
        st.floats(0, 9e4),
        st.lists(inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(SPANS)
def test_every_span_is_seen_within_the_time_line(tree: dict[str, Any]):
    for row in waterfall(tree, now=NOW).rows:
        assert 0 <= row.x <= WIDTH - LEAST
        assert LEAST <= row.width <= WIDTH - row.x
