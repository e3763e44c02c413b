"""The table "What is decided where" of docs/architecture.md leads to files and tests that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/architecture.md"
HEADING = "## What is decided where\n"
BEHAVIOURS_MIN = 40

ROW = re.compile(r"\| (.+?) \| \[\w+: `[\w./]+::([\w.]+)`\]\((\S+)\) \| \[`(test_\w+)`\]\((\S+)\) \|")
GROUP = re.compile(r"\| \*\*.+\*\* \| \| \|")


class Row(NamedTuple):
    """One behaviour, the definition that decides it, and the test that holds it."""

    behaviour: str
    symbol: str
    """A function, a class or a constant; `Class.method` in a class; in SQL a function or the name of a statement."""
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
            raise ValueError(f"not `| behaviour | [member: `file::SYMBOL`](link) | [`test`](link) |`: {line}")
        behaviour, symbol, file, test, test_file = found.groups()
        rows.append(Row(behaviour, symbol, PAGE.parent / file, test, PAGE.parent / test_file))
    return rows


def is_defined(symbol: str, file: Path) -> bool:
    """Return whether a file defines a symbol, rather than only mention it."""
    text = file.read_text()
    if file.suffix == ".sql":
        return bool(re.search(rf"\bFUNCTION {symbol}\(|^-- name: {symbol}$", text, re.MULTILINE))
    body: list[ast.stmt] = ast.parse(text).body
    for name in symbol.split("."):
        defined = {at: node for node in body for at in _names(node)}
        if name not in defined:
            return False
        body = getattr(defined[name], "body", [])
    return True


def _names(node: ast.stmt) -> list[str]:
    """Return what a statement gives a name to."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def test_the_map_names_forty_behaviours_once_each():
    behaviours = [row.behaviour for row in read_rows(PAGE.read_text())]

    assert len(behaviours) >= BEHAVIOURS_MIN
    assert len(behaviours) == len(set(behaviours))


def test_every_file_of_the_map_exists():
    assert [row for row in read_rows(PAGE.read_text()) if not row.file.is_file()] == []


def test_every_symbol_of_the_map_is_defined_in_its_file():
    assert [row for row in read_rows(PAGE.read_text()) if not is_defined(row.symbol, row.file)] == []


def test_a_symbol_that_is_only_mentioned_is_not_defined(tmp_path: Path):
    python, sql = tmp_path / "a.py", tmp_path / "a.sql"
    python.write_text("from b import other\nLIMIT: int = 3\nclass A:\n    def act(self): other()\n")
    sql.write_text("CREATE FUNCTION hold() AS $$ SELECT take() $$;\n-- name: find\n")

    assert [name for name in ("other", "LIMIT", "A", "A.act", "act") if is_defined(name, python)] == [
        "LIMIT",
        "A",
        "A.act",
    ]
    assert [name for name in ("hold", "take", "find") if is_defined(name, sql)] == ["hold", "find"]


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
