"""A trace as rows with places on a time line, for inline SVG: a page may not have style attributes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wayline.console.render.formats import lasted_ms, moment

WIDTH = 1_000
"""Units across the whole of a trace."""
LEAST = 3
"""Units of a span that is too short to be seen."""
ROWS_FIRST = 120
"""Rows of a page at first, three screens of them; the others are read once the page is scrolled to them."""
ROWS_MAX = 600
"""Rows of one page; the rest is said."""


@dataclass(frozen=True, slots=True)
class Row:
    """One span, and where it stands."""

    span: dict[str, Any]
    depth: int
    x: int
    width: int
    open: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The rows of a trace in the order of its tree."""

    rows: tuple[Row, ...]
    total_ms: float
    left_out: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether spans are to come: none is stored yet, or one has not ended."""
        return not self.rows or any(row.open for row in self.rows)

    @property
    def has_more(self) -> bool:
        """Return whether a page may show more of its spans."""
        return self.left_out > 0 and len(self.rows) < ROWS_MAX


def waterfall(root: dict[str, Any] | None, *, now: datetime, rows_max: int = ROWS_MAX) -> Waterfall:
    """Lay the spans of a trace out between the first beginning and the last end; an open span lasts until now."""
    spans = [] if root is None else list(_walk(root))
    if not spans:
        return Waterfall((), 0.0)
    begins = [at for span, _ in spans if (at := moment(span["start"]))]
    first = min(begins)
    ends = [_ms_after(first, span) + _duration(span, now) for span, _ in spans]
    total_ms = max(*ends, 0.001)
    rows = tuple(_row(span, depth, first=first, total_ms=total_ms, now=now) for span, depth in spans[:rows_max])
    return Waterfall(rows, total_ms, max(len(spans) - rows_max, 0))


def _walk(root: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each span with its depth, children after their parent by when they began; a tree may be very deep."""
    left = [(root, 0)]
    while left:
        span, depth = left.pop()
        yield span, depth
        left += [(child, depth + 1) for child in sorted(span["children"], key=_start, reverse=True)]


def _start(span: dict[str, Any]) -> str:
    return span["start"]


def _ms_after(first: datetime, span: dict[str, Any]) -> float:
    at = moment(span["start"])
    return 0.0 if at is None else (at - first).total_seconds() * 1_000


def _duration(span: dict[str, Any], now: datetime) -> float:
    if span["duration_ms"] is not None:
        return float(span["duration_ms"])
    return max(lasted_ms(span["start"], None, now) or 0.0, 0.0)


def _row(span: dict[str, Any], depth: int, *, first: datetime, total_ms: float, now: datetime) -> Row:
    x = min(round(_ms_after(first, span) / total_ms * WIDTH), WIDTH - LEAST)
    width = max(round(_duration(span, now) / total_ms * WIDTH), LEAST)
    is_open = span["duration_ms"] is None
    return Row(span, depth, max(x, 0), min(width, WIDTH - max(x, 0)), is_open, span["status"] == "error")
