"""Values of a program as JSON. They are hostile: as large, as deep and as circular as its memory allows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from pathlib import PurePath
from typing import Any

DEPTH_MAX = 64
VALUE_BYTES = 16
"""What each value counts beside its text: a million empty lists are work for their reader, too."""
INTEGER_BITS_MAX = 63
"""Of an argument: what every reader of JSON understands."""
TEXT_CHARS_MAX = 200
"""Of a value that has no form in JSON, as text."""
LEFT_OUT = "… left out: the value is too large …"


class NotJson(Exception):
    """A value cannot be an argument of a tool."""


def argument_values(arguments: Mapping[str, Any], *, bytes_max: int) -> dict[str, Any]:
    """Return arguments exactly as JSON has them. Raises NotJson, which says what is wrong and where."""
    return _Strict(bytes_max).object(arguments, "the arguments", DEPTH_MAX)


def readable_value(value: Any, *, bytes_max: int) -> Any:
    """Return a value as JSON for its reader: what has no form in it becomes text, what is too much is left out."""
    return _Readable(bytes_max).value(value, DEPTH_MAX)


def same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON; `1`, `1.0` and `true` are three values."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


class _Strict:
    """Copies what JSON has, counts its bytes, and refuses the rest."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = self._left = bytes_max

    def object(self, value: Mapping[Any, Any], where: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, held in value.items():
            if not isinstance(name, str):
                raise NotJson(f"{where} has the key {_short(name)}: keys are texts")
            self._text(name, where)
            found[name] = self._value(held, name if depth == DEPTH_MAX else f"{where}.{name}"[:TEXT_CHARS_MAX], depth)
        return found

    def _value(self, value: Any, where: str, depth: int) -> Any:
        self._take(VALUE_BYTES)
        if depth == 0:
            raise NotJson(f"{where} is nested more than {DEPTH_MAX} deep")
        match value:
            case None | bool():
                return value
            case str():
                return self._text(value, where)
            case int() if value.bit_length() <= INTEGER_BITS_MAX:
                return value
            case float() if isfinite(value):
                return value
            case list() | tuple():
                return [self._value(one, f"{where}[{n}]"[-TEXT_CHARS_MAX:], depth - 1) for n, one in enumerate(value)]
            case dict():
                return self.object(value, where, depth - 1)
        raise NotJson(f"{where} is {_short(value)}, of type {type(value).__name__}: no value of JSON")

    def _text(self, text: str, where: str) -> str:
        try:
            self._take(len(text.encode()))
        except UnicodeEncodeError:
            raise NotJson(f"{where} holds half of a surrogate pair") from None
        return text

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise NotJson(f"the arguments have more than {self._bytes_max} bytes")


class _Readable:
    """Copies what can be read, and leaves out what is beyond its room."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max

    def value(self, value: Any, depth: int) -> Any:
        self._left -= VALUE_BYTES
        if depth == 0 or self._left < 0:
            return LEFT_OUT
        match value:
            case None | bool():
                return value
            case int() if value.bit_length() <= INTEGER_BITS_MAX:
                return value
            case float() if isfinite(value):
                return value
            case str():
                return self._text(value)
            case dict():
                return self._object(value, depth)
            case list() | tuple():
                return self._list(value, depth)
            case set() | frozenset():
                return self._list(sorted(value, key=_short), depth)
        attributes = getattr(value, "attributes", None)
        return self._object(attributes, depth) if isinstance(attributes, dict) else self._text(_readable(value))

    def _object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, held in value.items():
            if self._left < 0:
                found["…"] = LEFT_OUT
                break
            found[self._text(name if isinstance(name, str) else _readable(name))] = self.value(held, depth - 1)
        return found

    def _list(self, value: Any, depth: int) -> list[Any]:
        found: list[Any] = []
        for held in value:
            if self._left < 0:
                found.append(LEFT_OUT)
                break
            found.append(self.value(held, depth - 1))
        return found

    def _text(self, text: str) -> str:
        cut = len(text) > max(0, self._left)
        kept = text[: max(0, self._left)].encode(errors="replace")
        self._left -= len(kept)
        return kept.decode() + LEFT_OUT if cut else kept.decode()


def _readable(value: Any) -> str:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | PurePath():
            return str(value)
    return _short(value)


def _short(value: Any) -> str:
    """Return a value in a few characters; no `repr` of a container, which may be endless."""
    if isinstance(value, str):
        return repr(value[:TEXT_CHARS_MAX])
    if isinstance(value, int) and value.bit_length() > 4 * TEXT_CHARS_MAX:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return repr(value)[:TEXT_CHARS_MAX]
