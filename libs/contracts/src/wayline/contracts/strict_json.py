"""Read JSON that others wrote: a value that is accepted can be written again, and is then the same."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

from pydantic_core import from_json

DEPTH_MAX = 100
"""How deep a value of others is nested at most: JSON writers refuse deeper ones, after they have been paid for."""
INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**64 - 1
"""The integers that every reader and writer of a body keeps as they are."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_PLACE = re.compile(r"at line (\d+) column (\d+)")
_OPENING = re.compile(r"[\[{]")
_LONG_NUMBER = re.compile(r"[0-9]{19}|[eE][+]?[0-9]{3}")
"""What an integer beyond 64 bits or a number beyond all floats holds."""


class NotStrictJson(json.JSONDecodeError):
    """A text that is no JSON, or whose value could not be written again as it is."""

    def __init__(self, why: str, *, at: int = 0) -> None:
        super().__init__(why, "", 0)
        self.pos = at
        """The character from which on it is no JSON; 0 where it is JSON that cannot be kept."""

    def __str__(self) -> str:
        return self.msg


def read_json(text: str | bytes) -> Any:
    """Return the value of a text. Raises NotStrictJson, also where the value is too deep or cannot be kept exactly."""
    # Editors and shells of Windows begin files with a byte order mark.
    text = text.removeprefix("\ufeff") if isinstance(text, str) else text.removeprefix(b"\xef\xbb\xbf")
    if isinstance(text, bytes) and text.startswith(_UTF16):
        raise NotStrictJson("it is UTF-16: send UTF-8")
    try:
        value = from_json(text, allow_inf_nan=False)
        whole = text if isinstance(text, str) else text.decode()
    except ValueError as error:
        raise NotStrictJson(str(error), at=_character(text, str(error))) from None
    # Most texts need no walk through their value.
    if _LONG_NUMBER.search(whole) or sum(1 for _ in _OPENING.finditer(whole)) > DEPTH_MAX:
        require_bounded(value)
    return value


def _character(text: str | bytes, error: str) -> int:
    """Return which character of a text a reader's error names by its line and column."""
    found = _PLACE.search(error)
    if found is None:
        return 0
    lines = text.split(b"\n" if isinstance(text, bytes) else "\n")  # pyright: ignore[reportArgumentType]
    before = lines[: int(found[1]) - 1]
    return max(0, sum(len(line) + 1 for line in before) + int(found[2]) - 1)


def require_bounded(value: Any) -> None:
    """Refuse a JSON value that is too deep or holds a number that cannot be kept. Raises NotStrictJson."""
    level, depth = [value], 0
    while level:
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += one.values()
            elif isinstance(one, list | tuple):
                below += one
            elif isinstance(one, int) and not INTEGER_MIN <= one <= INTEGER_MAX:
                raise NotStrictJson("it holds an integer of more than 64 bits: send it as a text")
            elif isinstance(one, float) and not isfinite(one):
                raise NotStrictJson("it holds a number that is too large")
        depth += any(isinstance(one, dict | list | tuple) for one in level)
        if depth > DEPTH_MAX:
            raise NotStrictJson(f"it is nested more than {DEPTH_MAX} deep")
        level = below
