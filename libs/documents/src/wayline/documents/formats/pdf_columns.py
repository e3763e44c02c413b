"""Read a page that is set in columns one column after the other, and a table row by row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import mean

GUTTER_MIN = 2
"""Characters of white space between two columns, at least."""
ROWS_MIN = 4
"""Rows of a page that are split, at least, before it is one of columns."""
SPLIT_MIN = 0.6
"""The share of a page's rows that are split."""
CROSSING_MAX = 0.2
"""The share of rows, such as titles, that may run over a gutter."""
WORDS_MIN = 2.5
FILLED_MIN = 0.55
"""What tells running text from a table: words in a cell, and how much of its column's width a cell fills."""
LINES_A_ROW_MIN = 1.3
CELL_WORDS_MAX = 4
"""What tells a table whose cells were read one by one from notes beside a text."""

_GAP = re.compile(f" {{{GUTTER_MIN},}}")


def in_columns(layout: str) -> str | None:
    """Return the text of a page column by column; None where it has no columns of running text.

    `layout` is the page with its words where they stand: rows of characters.
    """
    rows = [row.rstrip() for row in layout.split("\n") if row.strip()]
    gutters = _gutters(rows)
    if not gutters:
        return None
    starts = [0, *(end for _, end in gutters)]
    split = [_cells(row, gutters) for row in rows]
    table = [cells for cells in split if cells is not None and sum(map(bool, cells)) > 1]
    if len(table) < max(ROWS_MIN, SPLIT_MIN * len(rows)) or not _is_prose(
        table, starts, [*(start for start, _ in gutters), max(map(len, rows))]
    ):
        return None
    return "\n\n".join(_blocks(rows, split))


def in_rows(layout: str, plain: str) -> str | None:
    """Return the text of a page row by row; None where `plain` has its rows whole already, or it is no table.

    Some programs write each cell, or each word, as a line of its own: in `plain` they stand one below the other.
    """
    rows = [_GAP.split(row.strip()) for row in layout.split("\n") if row.strip()]
    lines = sum(not line.isspace() for line in plain.splitlines() if line)
    cells = [cell for row in rows if len(row) > 1 for cell in row]
    if not cells or lines < LINES_A_ROW_MIN * len(rows) or mean(len(cell.split()) for cell in cells) > CELL_WORDS_MAX:
        return None
    return "\n".join("  ".join(row) for row in rows)


def _gutters(rows: Sequence[str]) -> list[tuple[int, int]]:
    """Find the stretches of characters that hardly a row has anything in, with text on both sides."""
    if len(rows) < ROWS_MIN:
        return []
    width = max(map(len, rows))
    crossing_max = CROSSING_MAX * len(rows)
    filled = [sum(at < len(row) and row[at] != " " for row in rows) for at in range(width)]
    gutters: list[tuple[int, int]] = []
    start: int | None = None
    for at, count in enumerate(filled):
        if count <= crossing_max:
            start = at if start is None else start
        else:
            if start is not None and start > 0 and at - start >= GUTTER_MIN:
                gutters.append((start, at))
            start = None
    return gutters


def _cells(row: str, gutters: Sequence[tuple[int, int]]) -> list[str] | None:
    """Cut a row into cells; None where it runs over a gutter. Letters differ in width, so gaps differ by row."""
    gaps = [gap.span() for gap in _GAP.finditer(row)]
    cells: list[str] = []
    begun = 0
    for start, end in gutters:
        if len(row) <= start:
            cut = (len(row), len(row))
        else:
            near = [gap for gap in gaps if gap[0] < end and gap[1] > start and gap[0] >= begun]
            if not near:
                return None
            cut = max(near, key=lambda gap: gap[1] - gap[0])
        cells.append(row[begun : cut[0]].strip())
        begun = cut[1]
    return [*cells, row[begun:].strip()]


def _is_prose(table: Sequence[Sequence[str]], starts: Sequence[int], ends: Sequence[int]) -> bool:
    """Return whether each column holds running text: several words in most of its rows, over most of its width."""
    for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
        cells = [cells[at] for cells in table if cells[at]]
        if not cells or mean(len(cell.split()) for cell in cells) < WORDS_MIN:
            return False
        if mean(len(cell) for cell in cells) < FILLED_MIN * (end - start):
            return False
    return True


def _blocks(rows: Sequence[str], split: Sequence[Sequence[str] | None]) -> list[str]:
    """Order what is read one after the other: a row over all columns, between two of them column after column."""
    blocks: list[str] = []
    open_rows: list[Sequence[str]] = []

    def close() -> None:
        columns = zip(*open_rows, strict=True)
        blocks.extend(text for column in columns if (text := "\n".join(cell for cell in column if cell)))
        open_rows.clear()

    for row, cells in zip(rows, split, strict=True):
        if cells is None:
            close()
            blocks.append(" ".join(row.split()))
        else:
            open_rows.append(cells)
    close()
    return blocks
