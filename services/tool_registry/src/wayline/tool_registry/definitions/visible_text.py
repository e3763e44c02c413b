"""Show, or leave out, what cannot be seen in a text: a server may hide some in its descriptions."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache

KEPT = frozenset("\n\t ")
UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
"""Controls, formats such as bidirectional marks, what no font has, and spaces that look like the plain one."""
UNSEEN_RANGES = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xE0100, 0xE01EF),
)
"""Joiners, fillers, blanks and variation selectors, which Unicode counts as letters or marks."""
PLAIN = {"Zs": " ", "Zl": "\n", "Zp": "\n"}
"""What a model reads in place of a character of a category; the others are left out."""
SHORT_MAX = 0xFFFF
KNOWN_MAX = 16_384
"""Characters of which is remembered what stands for them: more than nearly any text has."""
LINE_READ_SHARE = 16
"""How many times as much of a text is looked at as a line of it may have."""


class _Instead(dict[int, str]):
    """What stands for each character, found out when it is met for the first time: a text may have millions."""

    def __init__(self, of_hidden: Callable[[str], str]) -> None:
        self._of_hidden = of_hidden

    def __missing__(self, point: int) -> str:
        if len(self) >= KNOWN_MAX:
            # A server may send all million that there are.
            self.clear()
        char = chr(point)
        self[point] = instead = char if _is_seen(char) else self._of_hidden(char)
        return instead


def visible(text: str) -> str:
    """Return a text with each character that cannot be seen as `\\u202e`; line ends and tabs stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_escapes())


def without_hidden(text: str) -> str:
    """Return a text without the characters that cannot be seen; a space or line end of another kind is a plain one."""
    return text if text.isascii() and text.isprintable() else text.translate(_plain())


def one_line(text: str, *, at_most: int) -> str:
    """Return the beginning of a text as one line without the characters that cannot be seen."""
    return " ".join(without_hidden(text[: LINE_READ_SHARE * at_most]).split())[:at_most]


@cache
def _escapes() -> _Instead:
    return _Instead(lambda char: _escaped(ord(char)))


@cache
def _plain() -> _Instead:
    return _Instead(lambda char: PLAIN.get(unicodedata.category(char), ""))


def _is_seen(char: str) -> bool:
    if char in KEPT:
        return True
    point = ord(char)
    hidden = unicodedata.category(char) in UNSEEN_CATEGORIES or any(low <= point <= high for low, high in UNSEEN_RANGES)
    return not hidden


def _escaped(point: int) -> str:
    """Return a character's escape as JSON has it: two halves beyond the first plane."""
    if point <= SHORT_MAX:
        return f"\\u{point:04x}"
    high, low = divmod(point - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
