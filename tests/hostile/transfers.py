"""Answers that are odd below their JSON: how they are packed, and how they come over the wire."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Iterator
from functools import cache

from .raw_server import Packed, Wire

PIECE = bytes(1024 * 1024)
PIECES = 256
MEMBERS = 200_000
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
METADATA_URL = "http://169.254.169.254/latest/meta-data/"


@cache
def bomb(wbits: int = 31) -> bytes:
    """Return 256 MiB of zeros, packed a thousandfold; `wbits` as zlib takes it: 31 for gzip, 15 for deflate."""
    packing = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return b"".join(packing.compress(PIECE) for _ in range(PIECES)) + packing.flush()


def deflated() -> bytes:
    return bomb(15)


def packed_thrice() -> bytes:
    return gzip.compress(gzip.compress(bomb()))


def empty_members() -> bytes:
    return gzip.compress(b"") * MEMBERS


def half_packed() -> bytes:
    return gzip.compress(b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')[:-12]


def dripping() -> Iterator[bytes]:
    yield HEAD + b"content-length: 1000000\r\n\r\n"
    yield from itertools.repeat(b" ")


def endless() -> Iterator[bytes]:
    yield HEAD + b"transfer-encoding: chunked\r\n\r\n"
    yield from itertools.repeat(b"10000\r\n" + bytes(65_536) + b"\r\n")


def endless_headers() -> Iterator[bytes]:
    yield HEAD
    yield from (b"x-%d: y\r\n" % number for number in itertools.count())


def one_endless_header() -> Iterator[bytes]:
    yield HEAD + b"x: "
    yield from itertools.repeat(b"y" * 65_536)


def endless_events() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    yield from itertools.repeat(b"8\r\n: busy\n\n\r\n")


def one_endless_event() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n"
    yield from itertools.repeat(b"10000\r\n" + b"x" * 65_536 + b"\r\n")


def once(*lines: bytes) -> Wire:
    return Wire(lambda: [b"\r\n".join(lines)])


def moved(to: bytes) -> Wire:
    return once(b"HTTP/1.1 307 Temporary Redirect", b"location: " + to, b"content-length: 0", b"", b"")


TRANSFERS: dict[str, Packed | Wire] = {
    "a gzip of 256 MiB": Packed(bomb, "gzip"),
    "a deflate of 256 MiB": Packed(deflated, "deflate"),
    "a gzip in a gzip in a gzip": Packed(packed_thrice, "gzip, gzip, gzip"),
    "200,000 empty members of a gzip": Packed(empty_members, "gzip"),
    "half of a gzip": Packed(half_packed, "gzip"),
    "a gzip that is none": Packed(lambda: b"{}", "gzip"),
    "a byte at a time": Wire(dripping, pause_s=0.1),
    "a body without end": Wire(endless),
    "headers without end": Wire(endless_headers),
    "one header without end": Wire(one_endless_header),
    "events without end": Wire(endless_events),
    "one event without end": Wire(one_endless_event),
    "a length of 5,000 digits": once(HEAD + b"content-length: " + b"9" * 5_000, b"", b""),
    "a negative length": once(HEAD + b"content-length: -1", b"", b"{}"),
    "two lengths": once(HEAD + b"content-length: 2", b"content-length: 90000", b"", b"{}"),
    "a chunk that lies": once(HEAD + b"transfer-encoding: chunked", b"", b"fffffffffffffff", b"{}"),
    "no HTTP": once(b"SSH-2.0-OpenSSH_9.9", b""),
    "a redirect to itself": moved(b"/mcp"),
    "a redirect to the metadata address": moved(METADATA_URL.encode()),
}
