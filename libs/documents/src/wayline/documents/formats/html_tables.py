"""Keep the rows of HTML tables in one line each, where the extraction of a page's article takes them apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wayline.documents.formats.markdown_tables import table_lines

ROWS_MIN = 2
CELLS_MIN = 2
"""Of a table of data: fewer rows or cells are a frame around something else."""
CELL_CHARS_MAX = 500
"""A longer cell is a part of the page that a table only places."""
SPAN_MAX = 100
"""Columns or rows that one cell covers; what a page claims beyond is not believed."""
ROW_CELLS_MAX = 200
CELLS_MAX = 100_000
"""Of all tables of a page, spanning ones counted in each row: a page with more is left as it was found."""
LOST_MAX = 0.5
"""The share of rows that an extraction may take apart before the page is read row by row."""

_TABLE = re.compile(r"<table\b", re.I)
_MARKDOWN_LINK = re.compile(r"\]\([^)\s]*\)")
_WORD = re.compile(r"\w+")


def with_rows(html: str, found: str) -> str | None:
    """Return the page with each data table as one line a row; None where `found`, its extraction, kept the rows.

    A cell that spans several rows is repeated in each. Blocking.
    """
    if not _TABLE.search(html):
        return None
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no types
    from lxml import html as lxml_html

    try:
        page = lxml_html.document_fromstring(html)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None
    tables = _data_tables(page)
    rows = [row for _, of_table in tables for row in of_table]
    kept = {_words(line) for line in found.split("\n")}
    if not rows or sum(_words(" ".join(row)) not in kept for row in rows) <= LOST_MAX * len(rows):
        return None
    for table, of_table in tables:
        _replace(table, of_table)
    return lxml_html.tostring(page, encoding="utf-8").decode()


def _data_tables(page: Any) -> list[tuple[Any, list[list[str]]]]:
    """Return the tables of data, each with its rows; none where a page has more cells than are looked at."""
    tables: list[tuple[Any, list[list[str]]]] = []
    left = CELLS_MAX
    for table in _outermost(page):
        rows: list[list[str]] = []
        for row in _rows(table):
            rows.append(row)
            left -= 1 + len(row)
            if left < 0:
                return []
        if _is_data(rows):
            tables.append((table, rows))
    return tables


def _outermost(page: Any) -> Iterator[Any]:
    return (table for table in page.iter("table") if not any(True for _ in table.iterancestors("table")))


def _is_data(rows: list[list[str]]) -> bool:
    filled = [row for row in rows if sum(map(bool, row)) >= CELLS_MIN]
    return len(filled) >= ROWS_MIN and all(len(cell) <= CELL_CHARS_MAX for row in rows for cell in row)


def _rows(table: Any) -> Iterator[list[str]]:
    """Yield the texts of each row's cells, with those that reach down from rows above."""
    reaching: dict[int, tuple[int, str]] = {}
    for row in table.iter("tr"):
        if next(row.iterancestors("table")) is not table:
            continue
        cells: list[str] = []
        for cell in row.iterchildren("td", "th"):
            _fill(cells, reaching)
            text = " ".join(" ".join(_texts(cell)).split())
            if (down := _span(cell, "rowspan")) > 1:
                reaching[len(cells)] = (down, text)
            cells.append(text)
            cells.extend([""] * (_span(cell, "colspan") - 1))
            if len(cells) >= ROW_CELLS_MAX:
                break
        _fill(cells, reaching)
        reaching = {at: (left - 1, text) for at, (left, text) in reaching.items() if left > 1}
        yield cells


def _fill(cells: list[str], reaching: dict[int, tuple[int, str]]) -> None:
    """Add the cells of rows above that reach into this one at its next place."""
    while (above := reaching.get(len(cells))) is not None and len(cells) < ROW_CELLS_MAX:
        cells.append(above[1])


def _texts(cell: Any) -> Iterator[str]:
    """Yield the texts of a cell, each element's apart: a line break or an inner cell ends a word."""
    for element in cell.iter():
        if isinstance(element.tag, str) and element.tag not in {"script", "style"} and element.text:
            yield element.text
        if element is not cell and element.tail:
            yield element.tail


def _span(cell: Any, name: str) -> int:
    value = cell.get(name, "")
    return min(int(value), SPAN_MAX) if value.isascii() and value.isdigit() and len(value) < 6 and int(value) else 1


def _words(text: str) -> str:
    return " ".join(_WORD.findall(_MARKDOWN_LINK.sub(" ", text)))


def _replace(table: Any, rows: list[list[str]]) -> None:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no types

    block = etree.Element("p")
    block.text = "\n".join(table_lines(rows))
    block.tail = table.tail
    table.getparent().replace(table, block)
