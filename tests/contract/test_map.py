"""The table "What is decided where" of docs/architecture.md leads to files and tests that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/architecture.md"
HEADING = "## What is decided where\n"
BEHAVIOURS_MIN = 40

ROW = re.compile(r"\| (.+?) \| \[.+?\]\((\S+)\) \| \[`(test_\w+)`\]\((\S+)\) \|")
GROUP = re.compile(r"\| \*\*.+\*\* \| \| \|")


class Row(NamedTuple):
    """One behaviour, the file that decides it, and the test that holds it."""

    behaviour: str
    file: Path
    test: str
    test_file: Path


def read_rows(page: str) -> list[Row]:
    """Return the rows of the table. Raises ValueError for a row that is none."""
    table = [line for line in page.partition(HEADING)[2].splitlines() if line.startswith("|")]
    rows = []
    for line in table[2:]:
        if GROUP.fullmatch(line):
            continue
        found = ROW.fullmatch(line)
        if found is None:
            raise ValueError(f"not `| behaviour | [member: `file`](link) | [`test`](link) |`: {line}")
        behaviour, file, test, test_file = found.groups()
        rows.append(Row(behaviour, PAGE.parent / file, test, PAGE.parent / test_file))
    return rows


def test_the_map_names_forty_behaviours_once_each():
    behaviours = [row.behaviour for row in read_rows(PAGE.read_text())]

    assert len(behaviours) >= BEHAVIOURS_MIN
    assert len(behaviours) == len(set(behaviours))


def test_every_file_of_the_map_exists():
    assert [row for row in read_rows(PAGE.read_text()) if not row.file.is_file()] == []


def test_every_test_of_the_map_is_in_its_file():
    rows = read_rows(PAGE.read_text())

    assert [row for row in rows if not re.search(rf"\bdef {row.test}\(", row.test_file.read_text())] == []


def test_a_row_without_a_test_is_refused():
    page = f"{HEADING}\n| what | decided in | held by |\n|---|---|---|\n| a thing | [a: `b.py`](../b.py) | |\n"

    with pytest.raises(ValueError, match="a thing"):
        read_rows(page)


def test_every_test_of_the_security_page_is_in_its_file():
    page = ROOT / "docs/security.md"
    named = re.findall(r"\[`(test_\w+)`\]\((\S+)\)", page.read_text())

    assert len(named) > 20
    assert [test for test, file in named if f"def {test}(" not in (page.parent / file).read_text()] == []
