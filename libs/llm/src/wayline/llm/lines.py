"""The lines of a streamed answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Protocol


class Body(Protocol):
    """What an answer's body must do: give whatever has arrived."""

    def iter_any(self) -> AsyncIterable[bytes]: ...


LINE_MAX_BYTES = 16 * 1024 * 1024
"""More than any provider sends at once: a stream without line ends must not fill the memory."""


async def lines(body: Body) -> AsyncGenerator[bytes]:
    """Each line without its end, as soon as it is whole; raises ValueError for one that is too long."""
    async for batch in batches(body):
        for line in batch:
            yield line


async def batches(body: Body) -> AsyncGenerator[list[bytes]]:
    """The same lines, as many at a time as became whole together.

    Taken from whatever the socket brings: one wait a chunk, where aiohttp's own `readline` makes one a line.
    """
    rest = b""
    async for chunk in body.iter_any():
        *whole, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
        if whole:
            yield whole
        if len(rest) > LINE_MAX_BYTES:
            raise ValueError(f"a line of more than {LINE_MAX_BYTES} bytes")
    if rest:
        yield [rest]
