"""Pages set in columns are read one column after the other, and tables row by row."""

from wayline.documents.formats.pdf_columns import in_columns, in_rows

COLUMNS = """
        A title that runs over all the columns of the page
The keeper of the                 Kelp forests grow very            A lease is renewed every
lighthouse counts the            fast in cold and clear           six seconds while a tool
waves every evening and         water, up to half a metre        runs, and who finds it too
writes the number into a          a day, and they feed more        old takes the work over
book that nobody reads.           animals than most woods.
"""
TABLE = """
Article                 Price                 Pieces
Lamp 1                  3.50                  12
Lamp 2                  4.50                  17
Lamp 3                  5.50                  2
Lamp 4                  6.50                  9
"""
ONE = """
The keeper of the lighthouse counts the waves every evening and writes the
number into a book that nobody reads. Kelp forests grow very fast in cold
and clear water, up to half a metre a day, and they feed more animals than
most woods. A lease is renewed every six seconds while a tool runs, and who
finds it too old takes the work over.
"""


def test_columns_of_running_text_are_read_one_after_the_other():
    read = in_columns(COLUMNS)

    assert read is not None
    assert read.split("\n\n") == [
        "A title that runs over all the columns of the page",
        "\n".join(
            (
                "The keeper of the",
                "lighthouse counts the",
                "waves every evening and",
                "writes the number into a",
                "book that nobody reads.",
            )
        ),
        "\n".join(
            (
                "Kelp forests grow very",
                "fast in cold and clear",
                "water, up to half a metre",
                "a day, and they feed more",
                "animals than most woods.",
            )
        ),
        "A lease is renewed every\nsix seconds while a tool\nruns, and who finds it too\nold takes the work over",
    ]


def test_a_table_has_no_columns_of_running_text():
    assert in_columns(TABLE) is None


def test_a_page_of_one_column_has_none():
    assert in_columns(ONE) is None
    assert in_columns("") is None


def one_by_one(layout: str) -> str:
    """Write each cell of a page as a line of its own, as some programs do."""
    return "\n".join(cell for row in layout.split("\n") for cell in row.split("  ") if cell.strip())


def test_a_table_written_cell_by_cell_is_read_row_by_row():
    read = in_rows(TABLE, one_by_one(TABLE))

    assert read is not None and read.split("\n")[:2] == ["Article  Price  Pieces", "Lamp 1  3.50  12"]


def test_rows_that_are_whole_already_stay_as_they_are():
    assert in_rows(TABLE, "\n".join(" ".join(row.split()) for row in TABLE.split("\n"))) is None


def test_notes_beside_a_text_are_no_rows_of_a_table():
    assert in_rows(COLUMNS, one_by_one(COLUMNS)) is None
