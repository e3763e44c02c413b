"""Lines come out of a stream whole, however the socket cut them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.llm import lines as module
from wayline.llm.lines import lines


@dataclass
class Body:
    """What the socket brings, piece by piece."""

    chunks: list[bytes]

    async def iter_any(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk


async def read(*chunks: bytes) -> list[bytes]:
    return [line async for line in lines(Body(list(chunks)))]


@given(st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.lists(st.integers(0, 200)))
def test_any_cut_gives_the_same_lines(said: list[bytes], cuts: list[int]):
    text = b"".join(line + b"\n" for line in said)
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]

    assert asyncio.run(read(*(text[start:end] for start, end in pairwise(edges)))) == said


async def test_a_last_line_without_an_end_counts():
    assert await read(b"one\nt", b"wo") == [b"one", b"two"]


async def test_a_stream_without_line_ends_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LINE_MAX_BYTES", 10)

    with pytest.raises(ValueError, match="more than 10 bytes"):
        await read(b"x" * 6, b"x" * 6)
