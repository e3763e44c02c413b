"""A wire between two programs that a test cuts and mends: a TCP proxy on a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Wire:
    """Passes bytes on until it is cut."""

    def __init__(self, target: str) -> None:
        place = urlsplit(target)
        self._host, self._port = place.hostname or "127.0.0.1", place.port or 80
        self._open = set[asyncio.StreamWriter]()
        self.is_cut = False
        self.url = ""

    @classmethod
    @asynccontextmanager
    async def to(cls, target: str) -> AsyncIterator[Wire]:
        """Yield a wire to an address."""
        wire = cls(target)
        server = await asyncio.start_server(wire._accept, "127.0.0.1", 0)
        wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield wire
        finally:
            wire.cut()
            server.close()

    def cut(self) -> None:
        """End all that is under way, and refuse what comes."""
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self.is_cut = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, far_writer}
        self._open |= ends
        try:
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        finally:
            self._open -= ends

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
        with suppress(OSError):
            writer.close()
