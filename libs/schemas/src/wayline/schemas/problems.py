"""What is wrong with a value, in words of bounded length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SHOWN_MAX_CHARS = 200
"""Of a value that a problem repeats."""
PROBLEM_MAX_CHARS = 300


def shown(value: Any) -> str:
    """Return a value as Python writes it, cut where it is long; what is cut off is never looked at."""
    pieces: list[str] = []
    _show(value, pieces, SHOWN_MAX_CHARS)
    text = "".join(pieces)
    return text if len(text) <= SHOWN_MAX_CHARS else f"{text[:SHOWN_MAX_CHARS]}…"


def _show(value: Any, pieces: list[str], room: int) -> int:
    """Append the pieces of a value, and return the room that is left."""
    if room < 0:
        return room
    if isinstance(value, dict):
        for number, (key, item) in enumerate(value.items()):
            room = _add(("{" if not number else ", ") + repr(key[:SHOWN_MAX_CHARS]) + ": ", pieces, room)
            room = _show(item, pieces, room)
            if room < 0:
                return room
        return _add("}" if value else "{}", pieces, room)
    if isinstance(value, list):
        for number, item in enumerate(value):
            room = _show(item, pieces, _add("[" if not number else ", ", pieces, room))
            if room < 0:
                return room
        return _add("]" if value else "[]", pieces, room)
    return _add(repr(value[: SHOWN_MAX_CHARS + 1] if isinstance(value, str) else value), pieces, room)


def _add(text: str, pieces: list[str], room: int) -> int:
    pieces.append(text)
    return room - len(text)


def says(words: str) -> Callable[[Any], str]:
    """Return what tells a problem: a value, and what is wrong with it."""
    return lambda value: f"{shown(value)} {words}"


def problem_text(where: str, message: str) -> str:
    """Return one problem: the field, and what is wrong there."""
    cut = message if len(message) <= PROBLEM_MAX_CHARS else f"{message[:PROBLEM_MAX_CHARS]}…"
    return f"{where[:PROBLEM_MAX_CHARS]}: {cut}" if where else cut
