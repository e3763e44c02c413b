"""Values as indented JSON, no longer than a page bears."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, NoReturn

from wayline.console.render.formats import MARKED, visible

SHOWN_MAX_CHARS = 50_000
_ESCAPES = {code: json.dumps(chr(code))[1:-1] for code in MARKED}


def pretty(value: Any, most: int = SHOWN_MAX_CHARS) -> str:
    """Write a value as indented JSON; of more than fits the beginning, with how much there is."""
    text = value if isinstance(value, str) else _indented(value)
    if len(text) <= most:
        return visible(text)
    return f"{visible(text[:most])}\n… {len(text) - most:,} more characters: see the raw log"


def _indented(value: Any) -> str:
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return "It is nested too deeply to be shown."


def parsed(text: str) -> Any:
    """Read JSON that a person typed. Raises ValueError, also for what no JSON can hold or nests too deeply."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name[:20]} is no number of JSON")


def finite(text: str) -> float:
    """Read a number that JSON can hold. Raises ValueError."""
    number = float(text)
    return number if isfinite(number) else _no_number(text)


def editable(value: Any) -> str:
    """Write a value as indented JSON that reads back as the same value: what hides or turns text around is an escape.

    All of it, however long: what is sent back is what a person approves.
    """
    return json.dumps(value, indent=2, ensure_ascii=False).translate(_ESCAPES)
