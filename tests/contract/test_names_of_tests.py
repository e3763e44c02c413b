"""A test's name says condition and result, and no more."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
WORDS_MAX = 11
"""After `test_`; in brackets behind a parametrized name stands what differs."""
DEFINED = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
"""To parse a thousand files of tests would take five seconds."""


def names_in(path: Path) -> list[str]:
    return DEFINED.findall(path.read_text())


def test_no_name_of_a_test_has_more_than_eleven_words():
    long = [name for path in TESTS.rglob("test_*.py") for name in names_in(path) if name.count("_") > WORDS_MAX]

    assert long == [], "say condition and result in about ten words"


def test_a_long_name_in_a_class_is_found(tmp_path: Path):
    (tmp_path / "test_a.py").write_text("class A:\n    async def test_a_long_name(self): ...\n")

    assert names_in(tmp_path / "test_a.py") == ["test_a_long_name"]
