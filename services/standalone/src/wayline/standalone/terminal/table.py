"""Tables: with a heading for people, as tab-separated lines for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text


def table(
    columns: Iterable[str], rows: Iterable[Iterable[str]], *, nothing: str, total: Sequence[str] = ()
) -> RenderableType:
    """Draw rows under a heading, or the text `nothing` when there are none.

    Into a file or a pipe: the rows alone, their cells parted by one tab, neither padded nor folded, no heading and no
    total, so that `cut -f1` is a column and `wc -l` a count.
    """
    return _Rows(tuple(columns), [tuple(row) for row in rows], nothing, tuple(total))


def details(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Draw the values of one thing, each with its name; values are markup, like cells."""
    return _Rows((), [(f"[bold]{name}[/bold]", value) for name, value in rows])


@dataclass(frozen=True, slots=True)
class _Rows:
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    nothing: str = ""
    total: tuple[str, ...] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not console.is_terminal:
            # As segments, because rich makes spaces of the tabs in a text.
            yield from (Segment("\t".join(map(_plain, row)) + "\n") for row in self.rows)
        elif self.rows:
            yield self._drawn()
        else:
            yield Text(self.nothing)

    def _drawn(self) -> Table:
        drawn = Table(
            box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), show_header=bool(self.columns)
        )
        for column in self.columns:
            # The first cell is what people copy into the next command: never broken.
            drawn.add_column(column, overflow="fold", no_wrap=not drawn.columns)
        for row in (*self.rows, *([self.total] if self.total else [])):
            drawn.add_row(*row)
        return drawn


def _plain(cell: str) -> str:
    """Return a cell's text without its style, on one line."""
    return " ".join(Text.from_markup(cell).plain.split())
