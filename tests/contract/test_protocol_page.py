"""Each rule of docs/protocol.md has a test, and each test that is named after a rule is named there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/protocol.md"
RULE = re.compile(r"^\*\*(\d+)\.\*\* (?:.|\n)+?\n\nHeld by: (.+)$", re.MULTILINE)
LINK = re.compile(r"\[`(test_\w+)`\]\((\S+)\)")


def rules() -> dict[int, list[tuple[str, str]]]:
    """Return the tests that each rule names, with their files."""
    return {int(number): LINK.findall(held_by) for number, held_by in RULE.findall(PAGE.read_text())}


def test_the_rules_are_numbered_without_a_gap():
    assert list(rules()) == list(range(1, len(rules()) + 1))


def test_each_rule_names_tests_that_are_there():
    named = [(number, test, file) for number, tests in rules().items() for test, file in tests]

    assert [number for number, tests in rules().items() if not tests] == []
    assert [one for one in named if f"def {one[1]}(" not in (PAGE.parent / one[2]).read_text()] == []


def test_each_test_of_a_rule_is_named_at_its_rule():
    tests = {
        (int(number), name)
        for file in (ROOT / "tests").rglob("test_*.py")
        for name, number in re.findall(r"def (test_rule_(\d+)_\w+)\(", file.read_text())
    }
    named = {(number, test) for number, tests in rules().items() for test, _ in tests}

    assert tests - named == set()
