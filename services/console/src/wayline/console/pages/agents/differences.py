"""What differs between two configurations, field by field; long texts line by line. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, Final

CONTEXT_LINES: Final = 2
LINES_MAX: Final = 400
"""Of one field's difference; the rest is said."""
LEFT_OUT: Final = "left to the tenant's settings"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a long text."""

    kind: str
    """`added`, `removed`, `same` or `place`."""
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs."""

    name: str
    before: str
    after: str
    lines: tuple[Line, ...] = ()
    """Of a text of several lines; else it is shown before and after."""


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return the fields that differ; those of objects in them singly."""
    left, right = _flat(before), _flat(after)
    return [
        _difference(name, left.get(name, LEFT_OUT), right.get(name, LEFT_OUT))
        for name in dict.fromkeys((*left, *right))
        if left.get(name, LEFT_OUT) != right.get(name, LEFT_OUT)
    ]


def _flat(config: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in config.items():
        if name == "routing" and isinstance(value, Mapping):
            found |= {f"{name}.{part}": _text(one) for part, one in value.items()}
        else:
            found[name] = _text(value)
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


_KINDS: Final = {"+": "added", "-": "removed", "@": "place"}


def _difference(name: str, before: str, after: str) -> Difference:
    if "\n" not in before and "\n" not in after:
        return Difference(name, before, after)
    drawn = list(unified_diff(before.splitlines(), after.splitlines(), n=CONTEXT_LINES, lineterm=""))[2:]
    lines = [Line(_KINDS.get(line[:1], "same"), line if line[:1] == "@" else line[1:]) for line in drawn[:LINES_MAX]]
    if len(drawn) > LINES_MAX:
        lines.append(Line("place", f"… {len(drawn) - LINES_MAX} more lines"))
    return Difference(name, before, after, tuple(lines))
