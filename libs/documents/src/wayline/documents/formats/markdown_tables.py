"""Write the rows of a table as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

BAR, ESCAPED = "|", "\\|"
_NUMBER = re.compile(r"[-+]?[\d.,]+ ?%?")


def table_lines(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table, one line a row; a first row that names the columns has a rule below it."""
    filled = [cells for row in rows if any(cells := [" ".join(cell.split()) for cell in row])]
    lines = [f"| {' | '.join(cell.replace(BAR, ESCAPED) for cell in cells)} |" for cells in filled]
    if len(filled) > 1 and names_columns(filled[0]):
        lines.insert(1, "|" + "---|" * len(filled[0]))
    return lines


def names_columns(cells: Sequence[str]) -> bool:
    """Return whether a row may name the columns below it: no number is among its cells, and most have words."""
    named = [cell for cell in cells if cell]
    return 2 * len(named) > len(cells) and not any(_NUMBER.fullmatch(cell) for cell in named)
