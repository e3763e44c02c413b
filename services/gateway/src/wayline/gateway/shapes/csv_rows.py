"""Rows of a table that a spreadsheet opens, none of whose cells is a formula. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any, Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What makes a cell a formula in a spreadsheet, also in full width: the words in it are a stranger's."""
NOTHING: Final = "-"
"""How tables say that there is no value, which no spreadsheet takes for a formula."""


def csv_cell(value: Any) -> str:
    """Return a value as the text of a cell, never as a formula."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if value.startswith(_FORMULA) and value != NOTHING else value


def csv_row(cells: Iterable[str]) -> bytes:
    """Return a row as a line."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()
