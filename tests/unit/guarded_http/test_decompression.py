"""Compressed bodies are unpacked up to their limit and no further."""

from __future__ import annotations

import asyncio
import gzip
import os
import zlib
from collections import deque
from collections.abc import Iterator
from itertools import pairwise

import pytest

from wayline.guarded_http.client import Limits
from wayline.guarded_http.client import _body as read_body
from wayline.guarded_http.decompression import MEMBERS_MAX, SLICE_BYTES, Unpacked, body_of

TEXT = b"All is well. " * 1_000


def drain(slices: Iterator[None]) -> None:
    deque(slices, maxlen=0)


def fed(encoding: str, sent: bytes, *, max_bytes: int = 1_000_000, step: int = 100) -> bytes:
    body = body_of(encoding, max_bytes=max_bytes)
    for at in range(0, len(sent), step):
        drain(body.feed(sent[at : at + step]))
    return body.content()


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("encoding", "sent"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("GZip", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
        ("gzip", gzip.compress(TEXT) + b"\0\0\0"),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)[2:-4]),
    ],
    ids=["none", "identity", "gzip", "gzip in two members", "gzip with padding", "deflate", "deflate without header"],
)
def test_a_body_is_unpacked_as_it_comes(encoding: str, sent: bytes, step: int):
    assert fed(encoding, sent, step=step) == TEXT


@pytest.mark.parametrize(
    "sent", [gzip.compress(TEXT)[:-9], b"\x1f\x8bnonsense", b"plain text"], ids=["cut", "nonsense", "text"]
)
def test_a_damaged_body_is_no_body(sent: bytes):
    with pytest.raises(zlib.error):
        fed("gzip", sent)


def test_an_encoding_that_is_not_read_is_refused():
    for encoding in ("br", "gzip, gzip", "zstd", "compress"):
        with pytest.raises(ValueError, match=encoding):
            body_of(encoding, max_bytes=10)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_bomb_is_unpacked_no_further_than_its_limit(encoding: str):
    bomb = b"\0" * 50_000_000
    sent = gzip.compress(bomb) if encoding == "gzip" else zlib.compress(bomb)
    body = body_of(encoding, max_bytes=1_000_000)

    with pytest.raises(Unpacked):
        drain(body.feed(sent))

    assert len(body._parts) == 1_000_001  # type: ignore[attr-defined]


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_body_above_its_limit_has_a_beginning(encoding: str):
    body = body_of(encoding, max_bytes=100)

    with pytest.raises(Unpacked):
        drain(body.feed(gzip.compress(TEXT) if encoding else TEXT))

    assert body.beginning() == TEXT[:100]


def test_a_body_of_many_empty_members_is_given_up():
    with pytest.raises(zlib.error, match=f"more than {MEMBERS_MAX} parts"):
        fed("gzip", gzip.compress(b"") * (MEMBERS_MAX + 1), step=65_536)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("large", [b"\0" * 4_000_000, os.urandom(300_000) + b"\1" * 700_001], ids=["zeros", "mixed"])
def test_a_body_is_unpacked_in_slices(encoding: str, large: bytes):
    sent = gzip.compress(large) if encoding == "gzip" else zlib.compress(large)
    body, sizes = body_of(encoding, max_bytes=10_000_000), [0]

    for _ in body.feed(sent):
        sizes.append(len(body._parts))  # type: ignore[attr-defined]

    assert max(after - before for before, after in pairwise(sizes)) <= SLICE_BYTES
    assert len(sizes) > len(large) // SLICE_BYTES
    assert body.content() == large


async def test_other_tasks_run_while_a_body_is_unpacked():
    turns = 0

    class Response:
        async def aiter_raw(self):
            yield gzip.compress(b"\0" * 8_000_000)

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    content, cut = await read_body(Response(), "a.example", {"content-encoding": "gzip"}, Limits())  # type: ignore[arg-type]
    counting.cancel()

    assert (len(content), cut) == (8_000_000, False)
    assert turns >= 8_000_000 // SLICE_BYTES
