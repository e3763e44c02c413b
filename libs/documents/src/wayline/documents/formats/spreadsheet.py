"""Text out of spreadsheets (XLSX, XLSB, XLS, ODS): each sheet a table of Markdown."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator
from typing import Any

from wayline.documents.errors import Unreadable
from wayline.documents.formats.markdown_tables import table_lines
from wayline.documents.readable import ReadLimits, TextPage

CELLS_MAX = 2_000_000
"""Of all sheets: beyond are exports for programs, not for reading."""


def spreadsheet_pages(content: bytes, limits: ReadLimits) -> list[TextPage]:
    """Return the text of each sheet under its name. Blocking; raises Unreadable."""
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError, WorksheetNotFound

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        pages: list[TextPage] = []
        left = CELLS_MAX
        for number, name in enumerate(book.sheet_names, start=1):
            try:
                sheet = book.get_sheet_by_name(name)
            except WorksheetNotFound:  # a chart has a sheet, and no cells
                continue
            left -= sheet.height * sheet.width
            if left < 0 and not limits.cut:
                raise Unreadable(f"The spreadsheet has more than {CELLS_MAX} cells: split it.")
            if left < 0:
                break
            if lines := table_lines(_rows(sheet)):
                pages.append(TextPage("\n".join(lines), markdown=True, number=number, title=name))
    except PasswordError:
        raise Unreadable("The spreadsheet is encrypted: remove its password and send it again.") from None
    except CalamineError as error:
        raise Unreadable("The spreadsheet is damaged and cannot be read: save it anew.") from error
    return pages


def _rows(sheet: Any) -> Iterator[list[str]]:
    for row in sheet.iter_rows():
        cells = [_shown(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        yield cells


def _shown(cell: Any) -> str:
    """Return a cell as a person reads it."""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, float):
        return f"{cell:.15g}"
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return cell.isoformat(" ") if isinstance(cell, dt.datetime) else str(cell)
