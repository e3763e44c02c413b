"""What the doctor finds: one thing looked at, how it is, and what to do where it is not well."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

State: TypeAlias = Literal["ok", "note", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing looked at. Only a problem makes the doctor's exit code 1."""

    about: str
    state: State
    said: str
    todo: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


Findings: TypeAlias = AsyncIterator[Finding]
Check: TypeAlias = Callable[[], Findings]


def ok(about: str, said: str) -> Finding:
    """Something is as it should be."""
    return Finding(about, "ok", said)


def note(about: str, said: str, todo: str = "") -> Finding:
    """Something to know."""
    return Finding(about, "note", said, todo)


def warning(about: str, said: str, todo: str) -> Finding:
    """Something that may become a problem."""
    return Finding(about, "warning", said, todo)


def problem(about: str, said: str, todo: str) -> Finding:
    """Something is wrong, and what to do."""
    return Finding(about, "problem", said, todo)


async def examine(about: str, check: Check) -> Findings:
    """A check's findings; one that fails in a way nobody thought of is a finding too, and the others go on."""
    try:
        async for finding in check():
            yield finding
    except Exception as error:
        yield problem(about, f"could not be examined: {error or type(error).__name__}", "see the log lines for more")
