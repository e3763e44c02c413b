"""Characters that a stream has cut in two: their halves join, and a half that stays alone becomes U+FFFD."""

from __future__ import annotations

import re
from typing import Any

HELD_MAX_CHARS = 64
"""Halves and odd bytes that are held at the end of a text. More of them are no character that was cut."""

_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_BYTES = re.compile("[\udc80-\udcff]+")
"""Bytes that are no UTF-8, as the error handler `surrogateescape` decodes them."""
_TAIL = re.compile("[\ud800-\udfff]+\\Z")


def joined(text: str) -> str:
    """Return a text whose halves of characters are joined, and those that have no other half replaced."""
    if text.isascii() or not _HALF.search(text):
        return text
    text = _PAIR.sub(_of_pair, text)
    text = _BYTES.sub(lambda run: run[0].encode(errors="surrogateescape").decode(errors="replace"), text)
    return _HALF.sub("\ufffd", text)


def joined_all(value: Any) -> Any:
    """Return a JSON value with every text and key of it `joined`."""
    if isinstance(value, str):
        return joined(value)
    if isinstance(value, list):
        return [joined_all(item) for item in value]
    if isinstance(value, dict):
        return {joined(key) if isinstance(key, str) else key: joined_all(item) for key, item in value.items()}
    return value


class Joiner:
    """Joins the texts of a stream: what a text ends with waits for the next one where it is half a character."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def add(self, text: str) -> str:
        """Return what is whole, of this text and of what was held."""
        if not self._held and text.isascii():
            return text
        text = self._held + text
        tail = _TAIL.search(text)
        self._held = tail[0] if tail and len(tail[0]) <= HELD_MAX_CHARS else ""
        return joined(text.removesuffix(self._held))

    def rest(self) -> str:
        """Return what is held when nothing follows."""
        held, self._held = self._held, ""
        return joined(held)


def _of_pair(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
