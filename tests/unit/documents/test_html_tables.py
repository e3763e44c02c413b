"""Rows of HTML tables stay whole, and a page that claims too many cells costs little."""

import pytest

from wayline.documents.formats.html import html_page
from wayline.documents.formats.html_tables import CELLS_MAX, with_rows

RATES = """<html><head><title>Rates</title><style>.x{color:red}</style></head><body><h1>Rates</h1><table>
<thead><tr><th>Country<th>Currency<th>Rate</thead>
<tr><td>Freedonia<td>FRD<td>1,25</tr>
<tr><td rowspan=2>Sylvania</td><td>SYL</td><td>0.50</td></tr>
<tr><td>SYX</td><td>0.75<br>net</td></tr>
<tr><td colspan=3>Valid from May<table><tr><td>inner</td><td>cell</td></tr></table></td></tr>
</table><p>Afterword</body></html>"""


def test_each_row_is_one_line_with_its_cells_apart():
    assert html_page(RATES.encode()).markdown.splitlines() == [
        "# Rates",
        "",
        "| Country | Currency | Rate |",
        "|---|---|---|",
        "| Freedonia | FRD | 1,25 |",
        "| Sylvania | SYL | 0.50 |",
        "| Sylvania | SYX | 0.75 net |",
        "| Valid from May inner cell | | |",
        "",
        "Afterword",
    ]


def test_a_fetched_page_keeps_the_rows_of_its_table():
    page = html_page(RATES.encode())

    assert (page.title, "| Freedonia | FRD | 1,25 |" in page.markdown.splitlines()) == ("Rates", True)


ROW = "<tr><td>A first cell</td><td>A second one</td></tr>"


@pytest.mark.parametrize(
    "page",
    [
        "<p>No table at all</p>",
        f"<table>{ROW}</table>",
        f"<table><tr><td>menu</td><td>{'A long article. ' * 60}</td></tr>{ROW}</table>",
        f"<table>{'<tr>' + '<td rowspan=100>x</td>' * 200 + '</tr>' + '<tr>' * 99}</table>" * 6,
        "<table>" * 3_000,
        "",
    ],
    ids=["none", "one row", "frame", "endless spans", "deep", "empty"],
)
def test_what_is_no_table_of_data_is_left_to_the_extraction(page: str):
    assert with_rows(page, "something else") is None


def test_rows_that_the_extraction_kept_are_left_as_they_are():
    assert with_rows(f"<table>{ROW}{ROW}</table>", "| A first cell | [A second one](http://host/a) |") is None


def test_the_cells_that_spans_claim_are_counted_before_they_are_kept():
    rows = CELLS_MAX // 200 + 1
    row = "<tr><td colspan=100>y</td><td colspan=100>z</td></tr>"

    assert with_rows(f"<table>{row * rows}</table>", "") is None
