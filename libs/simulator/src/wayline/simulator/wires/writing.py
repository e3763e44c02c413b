"""A reply on its way to the client, with what may go wrong there, and a count of the text sent until then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from aiohttp import web

from wayline.simulator.bill import Outcome
from wayline.simulator.prompt.counting import BLOCK_TOKENS, TOKEN_BYTES
from wayline.simulator.scripts.faults import Fault

FLUSH_TURNS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Frame:
    """A piece of the body, and which words of the reply it brings."""

    data: bytes
    part: int = 0
    text: str = ""
    unseen: str = ""
    """Words that the client is not shown, but charged for from here on."""
    usage: bool = False
    """Whether the final usage is in it."""
    at_least: int = 0
    """Output tokens that it tells the client of."""


class Meter:
    """Output tokens so far, counted before they are sent: the client never knows of more than is charged."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._said: dict[int, int] = {}
        self._at_least = 0
        self.usage_delivered = False

    def hear(self, frame: Frame) -> None:
        self._at_least = max(self._at_least, frame.at_least)
        if frame.text or frame.unseen:
            size = len((frame.text + frame.unseen).encode())
            self._said[frame.part] = self._said.get(frame.part, 0) + size

    @property
    def tokens(self) -> int:
        counted = sum(BLOCK_TOKENS - (-size // TOKEN_BYTES) for size in self._said.values())
        return min(self._limit, max(self._at_least, counted))


class Writer:
    """Writes frames to one response, as the fault wants it."""

    def __init__(self, request: web.Request, response: web.StreamResponse, fault: Fault) -> None:
        self._request = request
        self._response = response
        self._fault = fault
        self._written = 0

    async def write(self, frames: Iterable[Frame], meter: Meter, *, trouble: bytes | None = None) -> Outcome:
        """Send them all, or up to the fault; `trouble` is the error event that ends a stream."""
        held = self._fault.hold if self._fault.hold_at == "middle" else None
        try:
            for n, frame in enumerate(frames):
                if trouble is not None and n == self._fault.overload_after_events:
                    await self._send(trouble)
                    return "failed"
                meter.hear(frame)
                whole = await self._send(frame.data)
                meter.usage_delivered = meter.usage_delivered or (frame.usage and whole)
                if self._cut():
                    await self._abort()
                    return "cut"
                if held is not None and frame.text:
                    await held.wait()
                    held = None
        except ConnectionError:
            return "aborted"
        return "answered"

    async def _send(self, data: bytes) -> bool:
        """Send frames; return whether all of them went out."""
        limit = self._fault.cut_at_byte
        room = len(data) if limit is None else limit - self._written
        await self._drip(data[:room])
        self._written += len(data)
        return room >= len(data)

    def _cut(self) -> bool:
        return self._fault.cut_at_byte is not None and self._written >= self._fault.cut_at_byte

    async def _drip(self, data: bytes) -> None:
        size = self._fault.drip_bytes or max(len(data), 1)
        for at in range(0, len(data), size):
            await self._response.write(data[at : at + size])
            if self._fault.drip_bytes:
                # Even without a pause the reader gets its turn between two pieces.
                await asyncio.sleep(self._fault.drip_pause_s)

    async def _abort(self) -> None:
        """Break the connection once what was written has left: our buffer would be lost with it."""
        transport = self._request.transport
        for _ in range(FLUSH_TURNS_MAX):
            if transport is None or transport.get_write_buffer_size() == 0:
                break
            await asyncio.sleep(0)
        if transport is not None:
            transport.abort()
