"""Keywords for texts. `format` only describes."""

from __future__ import annotations

from typing import Any

from wayline.schemas.keywords.parts import Make, Part
from wayline.schemas.nodes import Check, Evaluated, Run
from wayline.schemas.problems import says, shown


def _min_length(part: Part) -> Check:
    least = part.count()
    short = says("should be non-empty" if least == 1 else "is too short")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return not isinstance(value, str) or len(value) >= least or run.fail(short, value)

    return check


def _max_length(part: Part) -> Check:
    most = part.count()
    long = says("is expected to be empty" if most == 0 else "is too long")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return not isinstance(value, str) or len(value) <= most or run.fail(long, value)

    return check


def _pattern(part: Part) -> Check | None:
    pattern = part.pattern(part.value)
    if pattern is None:
        return None
    unlike = says(f"does not match {shown(pattern.source)}")

    def check(value: Any, run: Run, seen: Evaluated | None) -> bool:
        return not isinstance(value, str) or run.finds(pattern, value) or run.fail(unlike, value)

    return check


KEYWORDS: dict[str, Make] = {"minLength": _min_length, "maxLength": _max_length, "pattern": _pattern}
