"""Walks through an encoded protobuf message without building it: what a stranger sent is counted first. Pure.

A field takes two bytes on the wire and hundreds in memory, and a stranger chooses how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
VARINT_BYTES_MAX: Final = 10


class NotProtobuf(ValueError):
    """The bytes are no encoded message."""


class TooManyFields(ValueError):
    """The message has more fields than are looked at."""


class ProtobufWalk:
    """Finds messages in others, and looks at so many fields at most."""

    def __init__(self, content: bytes, *, fields_max: int) -> None:
        self._content = content
        self._left = fields_max

    def messages(self, path: tuple[int, ...], begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield where each message begins and ends that the numbers of fields lead to.

        Raises NotProtobuf or TooManyFields.
        """
        for number, at, behind in self._fields(begin, len(self._content) if end is None else end):
            if number != path[0]:
                continue
            if len(path) == 1:
                yield at, behind
            else:
                yield from self.messages(path[1:], at, behind)

    def _fields(self, at: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield the number of each field that holds bytes, with where these begin and end."""
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise TooManyFields
            key, at = self._varint(at, end)
            wire, size = key & 7, 0
            if wire == VARINT:
                _, at = self._varint(at, end)
            elif wire == LENGTH_DELIMITED:
                size, at = self._varint(at, end)
            elif wire in (FIXED64, FIXED32):
                at += 8 if wire == FIXED64 else 4
            else:
                raise NotProtobuf
            if at + size > end:
                raise NotProtobuf
            if wire == LENGTH_DELIMITED:
                yield key >> 3, at, at + size
            at += size

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = 0
        for shift, place in enumerate(range(at, min(end, at + VARINT_BYTES_MAX))):
            byte = self._content[place]
            value |= (byte & 0x7F) << (7 * shift)
            if byte < 0x80:
                return value, place + 1
        raise NotProtobuf
