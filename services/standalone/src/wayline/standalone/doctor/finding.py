"""A finding of the doctor: the subject, its state, and what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

State: TypeAlias = Literal["ok", "note", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """The result of one check. Only a problem makes the doctor's exit code 1."""

    about: str
    state: State
    text: str
    todo: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the finding for `--json`, where the text is called `said`."""
        return {"about": self.about, "state": self.state, "said": self.text, "todo": self.todo}


Findings: TypeAlias = AsyncIterator[Finding]
Check: TypeAlias = Callable[[], Findings]


def ok(about: str, text: str) -> Finding:
    """Report that something is as it should be."""
    return Finding(about, "ok", text)


def note(about: str, text: str, todo: str = "") -> Finding:
    """Report something to know."""
    return Finding(about, "note", text, todo)


def warning(about: str, text: str, todo: str) -> Finding:
    """Report something that may become a problem."""
    return Finding(about, "warning", text, todo)


def problem(about: str, text: str, todo: str) -> Finding:
    """Report something that is wrong, and what to do."""
    return Finding(about, "problem", text, todo)


async def examine(about: str, check: Check) -> Findings:
    """Yield a check's findings; an unexpected error becomes a finding, so that the other checks go on."""
    try:
        async for finding in check():
            yield finding
    except Exception as error:
        yield problem(about, f"could not be examined: {error or type(error).__name__}", "see the log lines for more")
