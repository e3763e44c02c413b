"""Rows for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], *, nothing: str) -> RenderableType:
    """Rows under a heading, without lines; or what it means that there are none."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        # What begins a line is what one copies into the next command: never broken.
        drawn.add_column(column, overflow="fold", no_wrap=not drawn.columns)
    for row in rows:
        drawn.add_row(*row)
    return drawn if drawn.row_count else Text(nothing)
