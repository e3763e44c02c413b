"""Read JSON as models write it: whole, broken, or not finished yet."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from wayline.contracts.strict_json import DEPTH_MAX, read_json
from wayline.llm.broken_json import lenient

REPAIR_MAX_CHARS = 100_000
READS_MAX = 600_000
"""Characters the library may look at, most of them more than once: about half a second, and nothing else runs then."""
PLACES_MAX = 200
"""Where a string of a guess is looked for in its text."""
OBJECTS_MAX = 50
"""Places where an object is looked for in one text."""

_NUMERIC = re.compile(r"(?<![\w.])[+-]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![0-9])")
_THOUSANDS = re.compile(r"(?<![\w.])[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?")
_MENDED = re.compile(r"[\\\n\r\t\x22\x27\x60\u201c\u201d]")
_WORDS = re.compile(r"[a-z]+")
_SPELLED: dict[Any, frozenset[str]] = {
    True: frozenset({"true"}),
    False: frozenset({"false"}),
    None: frozenset({"null", "none", "undefined", "nan"}),
}
_UNSURE = re.compile(r"[\\\s\"'`\u201c\u201d]|(?<=\\)[nrt]")
_BRACKETS = re.compile(r"[\[{]|[\]}]")
_NOTHING_YET = re.compile(r"\s*(?:-?[0-9.eE+-]*|tr?u?|fa?l?s?|nu?l?)")
_OPEN_NUMBER = re.compile(r"[\[:,]\s*(-?[0-9][0-9.eE+-]*)$")
_OPEN_NUMBER_MAX_CHARS = 400


def strict(text: str) -> Any:
    """Parse a text that is valid JSON. Raises ValueError for any other."""
    return read_json(text)


def repaired(text: str) -> Any:
    """Parse a text and mend what is broken. Raises ValueError where no value can be found."""
    try:
        return strict(text)
    except ValueError:
        pass
    if len(text) > REPAIR_MAX_CHARS:
        raise ValueError(f"broken, and with {len(text)} characters too long to mend")
    if _too_deep(text):
        raise ValueError(f"broken, and nested more than {DEPTH_MAX} deep")
    try:
        return storable(lenient.read(text))
    except lenient.Unclear:
        return storable(_guessed(text))


def _guessed(text: str) -> Any:
    from json_repair import repair_json

    try:
        value = repair_json(_Metered(text), return_objects=True, skip_json_loads=True)
    except _TooMuch:
        raise ValueError("broken, and too confused to mend") from None
    except RecursionError:
        raise ValueError("broken, and nested too deep") from None
    if value == "" and text.strip().strip("\"'"):
        raise ValueError("holds no value")
    if not _stands(value, text):
        raise ValueError("broken, and what was meant is open to doubt")
    return value


def _stands(value: Any, text: str) -> bool:
    """Return whether all that a guess holds stands in the text as whole tokens: a part of one is another value."""
    numbers = {_number(found) for shape in (_NUMERIC, _THOUSANDS) for found in shape.findall(text)}
    words, at = set(_WORDS.findall(text.lower())), 0
    for leaf in _leaves(value):
        if isinstance(leaf, str):
            at = _after(leaf, text, at)
            if at < 0:
                return False
        elif leaf is None or isinstance(leaf, bool):
            if not words & _SPELLED[leaf]:
                return False
        elif float(leaf) not in numbers:
            return False
    return True


def _leaves(value: Any) -> Iterator[Any]:
    """Return every key and every value that holds no other, in order."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _after(part: str, text: str, at: int) -> int:
    """Find where a string ends that stands in the text from `at` on or before; -1: it is not there as a whole."""
    for form in dict.fromkeys((part, part.strip(), json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1])):
        for begin in (at, 0):
            found = text.find(form, begin)
            for _ in range(PLACES_MAX):
                if found < 0:
                    break
                end = found + len(form)
                if not (_joins(text[found - 1 : found], form[:1]) or _joins(form[-1:], text[end : end + 1])):
                    return end
                found = text.find(form, found + 1)
    # Its escapes or its line ends were mended.
    return at if _MENDED.search(part) and _bare(part) in _bare(text) else -1


def _joins(before: str, after: str) -> bool:
    return before.isalnum() and after.isalnum()


def _bare(text: str) -> str:
    return _UNSURE.sub("", text)


def _number(value: str) -> float:
    try:
        return float(value.replace(",", "").replace("_", ""))
    except ValueError:
        return math.nan


class _TooMuch(Exception):
    """The library has looked at more characters than it may."""


class _Metered(str):
    """A text that counts how often it is looked at: the library has no limit, and with many stray quotes needs one."""

    __slots__ = ("reads",)

    def __getitem__(self, place: Any) -> str:
        self.reads = getattr(self, "reads", 0) + 1
        if self.reads > READS_MAX:
            raise _TooMuch
        return str.__getitem__(self, place)


def partial(text: str) -> Any:
    """Return the certain part of an unfinished value, to which more text can only add; None if nothing is certain yet.

    Raises ValueError for what is not the beginning of JSON.
    """
    from pydantic_core import from_json

    if _NOTHING_YET.fullmatch(text):
        return None
    # 12 may become 123.
    number = _OPEN_NUMBER.search(text, max(0, len(text) - _OPEN_NUMBER_MAX_CHARS))
    return from_json(text[: number.start(1)] if number else text, allow_partial="trailing-strings")


def _too_deep(text: str) -> bool:
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth = max(0, depth + (1 if bracket.group() in "[{" else -1))
        if depth > DEPTH_MAX:
            return True
    return False


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield every whole object in a text, in order, whatever surrounds it."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(OBJECTS_MAX):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            if isinstance(value, dict):
                yield storable(value)


def storable(value: Any) -> Any:
    """Remove what JSON cannot hold: lone surrogates, huge integers, infinities."""
    if isinstance(value, dict):
        return {storable(str(key)): storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return float(value) if value.bit_length() < 1_000 else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
