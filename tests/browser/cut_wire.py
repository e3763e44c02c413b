"""A wire between two programs that a test cuts and mends, also at a chosen byte: a TCP proxy on a port of its own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

EVENT = re.compile(rb"text/event-stream|event: ")
"""What stands once in each event of a stream, and once before the first."""


@dataclass(frozen=True)
class Moment:
    """A place in what comes back over a wire: so many bytes behind the n-th event of its streams, or one of a name."""

    event: int | str
    byte: int = 0

    @property
    def is_late(self) -> bool:
        """Return whether it is one of the moments after which the job ends before the wire is mended."""
        return isinstance(self.event, str) or self.event % 2 == 1

    def __str__(self) -> str:
        return f"{self.event}+{self.byte}"


class Wire:
    """Passes bytes on until it is cut."""

    def __init__(self, target: str) -> None:
        self.target = target
        place = urlsplit(target)
        self._host, self._port = place.hostname or "127.0.0.1", place.port or 80
        self._open = set[asyncio.StreamWriter]()
        self._moment: Moment | None = None
        self._act: Callable[[], object] = self.cut
        self._left: int | None = None
        """Bytes that pass until the moment, once its event has come."""
        self._events = 0
        self.is_cut = False
        self.refused = 0
        """Connections that were refused since the wire was cut."""
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

    def at(self, moment: Moment, act: Callable[[], object] | None = None) -> None:
        """Do something once at a moment, counted from now on: by default be cut."""
        self._events, self.refused, self._left = 0, 0, None
        self._moment, self._act = moment, act or self.cut

    @property
    def has_acted(self) -> bool:
        """Return whether the moment has come."""
        return self._moment is None

    def cut(self) -> None:
        """End all that is under way, and refuse what comes."""
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self.is_cut = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            self.refused += 1
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            self.refused += 1
            writer.transport.abort()
            return
        ends = {writer, far_writer}
        self._open |= ends
        try:
            await asyncio.gather(self._pass(reader, far_writer), self._come_back(far_reader, writer))
        finally:
            self._open -= ends

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
        with suppress(OSError):
            writer.close()

    async def _come_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                until = self._until(piece)
                writer.write(piece if until is None else piece[:until])
                await writer.drain()
                if until is not None:
                    self._moment = None
                    self._act()
                    if not self.is_cut:
                        writer.write(piece[until:])
        with suppress(OSError):
            writer.close()

    def _until(self, piece: bytes) -> int | None:
        """Return how much of what came back passes before the moment; None: all of it, it has not come."""
        begun = 0
        if self._moment is None:
            return None
        if self._left is None:
            event = self._moment.event
            pattern = re.escape(event.encode()) if isinstance(event, str) else EVENT
            for found in re.finditer(pattern, piece):
                self._events += 1
                if self._left is None and (isinstance(event, str) or self._events > event):
                    self._left, begun = self._moment.byte, found.start()
        if self._left is None:
            return None
        if self._left <= len(piece) - begun:
            return begun + self._left
        self._left -= len(piece) - begun
        return None
