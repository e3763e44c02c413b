"""The suite's figures in docs/mcp.md, where `make mcp-conformance` asks for them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Final

from .suite import Report

PAGE: Final = "WAYLINE_WRITE_CONFORMANCE"
"""Names the page that is written; unset: the figures are printed only."""
BEGIN: Final = "<!-- made by `make mcp-conformance`: begin -->"
END: Final = "<!-- made by `make mcp-conformance`: end -->"
HEAD: Final = "| tested | protocol | checks | scenarios | not passed |\n|---|---|---|---|---|\n"
PACKAGES: Final = Path(__file__).with_name("package.json")


def note(what: str, revision: str, report: Report) -> None:
    """Print a run's figures, and put them into the page."""
    line = _line(what, revision, report)
    print(f"\n{line}")
    if page := os.environ.get(PAGE):
        _write(Path(page), f"| {what} | {revision} |", line)


def _line(what: str, revision: str, report: Report) -> str:
    ran = report.required
    passed = sum(checks.passed for checks in ran.values())
    total = passed + sum(checks.failed for checks in ran.values())
    missing = ", ".join(_grouped(report.failed)) or "none"
    scenarios = f"{len(ran) - len(report.failed)} of {len(ran)}"
    return f"| {what} | {revision} | {passed} of {total} | {scenarios} | {missing} |"


def _grouped(names: Collection[str]) -> list[str]:
    """Return names, those of one folder as one."""
    folders = Counter(name.partition("/")[0] if "/" in name else "" for name in names)
    alone = sorted(f"`{name}`" for name in names if "/" not in name)
    return [f"`{folder}/*` ({count})" for folder, count in sorted(folders.items()) if folder] + alone


def _write(page: Path, key: str, line: str) -> None:
    """Put a line in the place of the one that begins alike; what is around the table stays."""
    text = page.read_text()
    before, found, rest = text.partition(BEGIN)
    table, ended, after = rest.partition(END)
    if not found or not ended:
        raise SystemExit(f"{page} has no place for the figures: it needs the lines {BEGIN} and {END}")
    lines = [one for one in table.splitlines() if one.startswith("| ") and one[2:8] != "tested"]
    lines = sorted({*(one for one in lines if not one.startswith(key)), line}, reverse=True)
    version = json.loads(PACKAGES.read_text())["dependencies"]["@modelcontextprotocol/conformance"]
    made = f"With `@modelcontextprotocol/conformance` {version}:\n\n{HEAD}" + "\n".join(lines)
    page.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}")
