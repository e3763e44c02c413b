"""Unpack a compressed body as it comes, never further than its limit."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

ACCEPTED = "gzip, deflate"
MEMBERS_MAX = 1_000
"""Parts of a gzip body: a body of empty ones costs seconds and holds nothing."""
SLICE_BYTES = 256 * 1024
"""Unpacked at once: less than a millisecond's work."""
_GZIP = b"\x1f\x8b"


class Unpacked(Exception):
    """The body is longer than its limit."""


class Body(Protocol):
    """Collects a body; `feed` yields after each slice of its work, and raises Unpacked or zlib.error."""

    def feed(self, chunk: bytes) -> Iterator[None]: ...

    def content(self) -> bytes: ...

    def beginning(self) -> bytes: ...


def body_of(encoding: str, *, max_bytes: int) -> Body:
    """Return what collects a body of this `Content-Encoding`. Raises ValueError for one that is not read."""
    match encoding.strip().lower():
        case "" | "identity":
            return _Plain(max_bytes)
        case "gzip" | "x-gzip":
            return _Compressed(max_bytes, gzip=True)
        case "deflate":
            return _Compressed(max_bytes, gzip=False)
        case _:
            raise ValueError(encoding)


class _Plain:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts = bytearray()

    def feed(self, chunk: bytes) -> Iterator[None]:
        """Yield once the bytes are taken."""
        self._add(chunk)
        yield

    def _add(self, piece: bytes) -> None:
        self._parts += piece
        if len(self._parts) > self._max_bytes:
            raise Unpacked

    def content(self) -> bytes:
        return bytes(self._parts)

    def beginning(self) -> bytes:
        """Return as much as the limit lets, of a body that is longer."""
        return bytes(self._parts[: self._max_bytes])


class _Compressed(_Plain):
    def __init__(self, max_bytes: int, *, gzip: bool) -> None:
        super().__init__(max_bytes)
        self._gzip = gzip
        self._stream: zlib._Decompress | None = None
        self._received = 0
        self._members = 1
        self._padding = False
        """What follows the end is not compressed, and means nothing."""

    def feed(self, chunk: bytes) -> Iterator[None]:
        """Yield after each slice: a few bytes may unpack to megabytes, and others wait for the event loop."""
        self._received += len(chunk)
        if self._received > self._max_bytes:
            raise Unpacked
        more = bool(chunk)
        while more and not self._padding:
            self._stream = self._stream or zlib.decompressobj(self._window_bits(chunk[0]))
            # One byte more than there is room for: the limit is seen without unpacking what is behind it.
            at_most = min(SLICE_BYTES, self._max_bytes - len(self._parts) + 1)
            piece = self._stream.decompress(chunk, at_most)
            self._add(piece)
            chunk = self._stream.unconsumed_tail
            # A slice that is full may have more behind it, also where nothing is left to read.
            more = bool(chunk) or len(piece) == at_most
            if self._stream.eof:
                chunk = self._next_member(self._stream.unused_data)
                more = bool(chunk)
            yield

    def _window_bits(self, first: int) -> int:
        if self._gzip:
            return zlib.MAX_WBITS | 16
        # Some servers send `deflate` without the header that the standard asks for.
        return zlib.MAX_WBITS if first & 0x0F == 8 else -zlib.MAX_WBITS

    def _next_member(self, rest: bytes) -> bytes:
        """Begin anew with what follows the end, where that is another gzip member."""
        if len(rest) < len(_GZIP):
            return b""
        if self._gzip and rest.startswith(_GZIP):
            self._members += 1
            if self._members > MEMBERS_MAX:
                raise zlib.error(f"the body has more than {MEMBERS_MAX} parts")
            self._stream = None
            return rest
        self._padding = True
        return b""

    def content(self) -> bytes:
        if self._stream is not None and not self._stream.eof:
            raise zlib.error("the body breaks off")
        return super().content()
