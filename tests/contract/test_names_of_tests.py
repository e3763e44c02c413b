"""A test's name says condition and result, and no more."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
WORDS_MAX = 11
"""After `test_`; in brackets behind a parametrized name stands what differs."""


def names_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def test_no_name_of_a_test_has_more_than_eleven_words():
    long = [name for path in TESTS.rglob("test_*.py") for name in names_in(path) if name.count("_") > WORDS_MAX]

    assert long == [], "say condition and result in about ten words"
