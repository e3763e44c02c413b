"""docs/keys.md: every key says what holds it, and that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/keys.md"


def test_every_key_is_held_by_a_test_that_exists():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "held by" not in line]
    bound = [row for row in rows if row.count("|") == 6]
    tests = {
        match[1]: PAGE.parent / match[2] for row in bound for match in re.finditer(r"\[`(test_\w+)`\]\((\S+)\)", row)
    }

    assert len(bound) >= 13
    assert [row for row in bound if not re.search(r"`KEYS: \w+`|\[`test_\w+`\]", row)] == []
    assert [name for name, path in tests.items() if f"def {name}(" not in path.read_text()] == []
