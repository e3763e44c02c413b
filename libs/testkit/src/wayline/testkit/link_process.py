"""The process behind `network.py`: TCP links that carry bytes at once, late, or not at all, each direction by itself.

TCP never loses bytes: what a network drops is sent again later. So a direction that is down keeps what it was given
until it is up again, and a lost packet arrives after the time in which TCP repeats it.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from dataclasses import dataclass, field
from typing import cast

import orjson
import uvloop

REPEATED_AFTER_S = 0.2
"""What TCP waits before it sends a packet again; twice as long each further time."""
REPEATS_MAX = 6
KEPT_MAX_BYTES = 4 * 1024 * 1024
"""What a direction holds before its sender has to wait, as the buffers of two kernels would."""
CONTROL_MAX_BYTES = 256 * 1024
DIAL_WITHIN_S = 5.0


@dataclass(frozen=True)
class Way:
    """How one node reaches another now."""

    down: bool = False
    delay_s: float = 0.0
    lost: float = 0.0
    """The share of pieces that the network drops."""


@dataclass
class Links:
    """All links of a network: where each listens and leads, and how its two directions are."""

    draw: random.Random
    ways: dict[tuple[str, str], Way] = field(default_factory=dict)
    directions: set[Direction] = field(default_factory=set)
    dialing: set[asyncio.Task[None]] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def way(self, source: str, target: str) -> Way:
        return self.ways.get((source, target), Way())

    def set(self, ways: dict[tuple[str, str], Way]) -> None:
        """Have every direction be as told; one that is not named carries bytes at once."""
        self.ways = ways
        for direction in list(self.directions):
            direction.flush()
        self.changed.set()
        self.changed = asyncio.Event()

    def reset(self, ends: set[tuple[str, str]]) -> None:
        """Break every connection between these nodes, as a firewall does that answers for the other side."""
        for direction in [one for one in self.directions if one.between in ends]:
            for end in (direction.sender, direction.receiver):
                if end is not None:
                    end.transport.abort()
            self.directions.discard(direction)

    async def until_both_up(self, source: str, target: str) -> None:
        """Wait until a connection can be made: its first packets go both ways."""
        while self.way(source, target).down or self.way(target, source).down:
            await self.changed.wait()


class Direction:
    """The bytes on their way from one end of a connection to the other."""

    def __init__(self, links: Links, source: str, target: str) -> None:
        self._links = links
        self.between = (source, target)
        self.sender: End | None = None
        self.receiver: End | None = None
        self._kept: deque[tuple[float, bytes | None]] = deque()
        """Each piece with when it arrives; None is the end."""
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        links.directions.add(self)

    def carry(self, piece: bytes | None) -> None:
        """Take a piece from the sender: it arrives when the network lets it."""
        way = self._links.way(*self.between)
        at = asyncio.get_running_loop().time() + way.delay_s
        if way.lost:
            at += self._repeats(way.lost)
        if self._kept:
            # In order, as TCP is.
            at = max(at, self._kept[-1][0])
        self._kept.append((at, piece))
        self._bytes += len(piece or b"")
        if self._bytes > KEPT_MAX_BYTES and self.sender is not None:
            self.sender.wait(self)
        self.flush()

    def _repeats(self, lost: float) -> float:
        repeats = 0
        while repeats < REPEATS_MAX and self._links.draw.random() < lost:
            repeats += 1
        return REPEATED_AFTER_S * (2**repeats - 1)

    def flush(self) -> None:
        """Hand on what has arrived."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.receiver is None or self._links.way(*self.between).down:
            return
        loop = asyncio.get_running_loop()
        while self._kept and self._kept[0][0] <= loop.time():
            _, piece = self._kept.popleft()
            if piece is None:
                return self._end()
            self._bytes -= len(piece)
            self.receiver.transport.write(piece)
        if self._kept:
            self._timer = loop.call_at(self._kept[0][0], self.flush)
        if self._bytes <= KEPT_MAX_BYTES and self.sender is not None:
            self.sender.go_on(self)

    def forget(self) -> None:
        """Carry no more: nobody is there to receive it."""
        self.receiver = None
        self._links.directions.discard(self)

    def _end(self) -> None:
        self._links.directions.discard(self)
        if self.receiver is not None:
            self.receiver.transport.close()


class End(asyncio.Protocol):
    """One end of a connection: reads into the direction that leaves it, and is written by the other."""

    transport: asyncio.Transport

    def __init__(self, leaving: Direction, arriving: Direction) -> None:
        self._leaving = leaving
        self._arriving = arriving
        self._waits_for: set[object] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._leaving.sender = self
        self._arriving.receiver = self
        self._arriving.flush()

    def data_received(self, data: bytes) -> None:
        self._leaving.carry(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leaving.sender = None
        self._leaving.carry(None)
        self._arriving.forget()

    def wait(self, what: object) -> None:
        """Read no more until that goes on."""
        if not self._waits_for and not self.transport.is_closing():
            self.transport.pause_reading()
        self._waits_for.add(what)

    def go_on(self, what: object) -> None:
        """Read again once nothing is waited for."""
        if what in self._waits_for:
            self._waits_for.discard(what)
            if not self._waits_for and not self.transport.is_closing():
                self.transport.resume_reading()

    def pause_writing(self) -> None:
        if self._arriving.sender is not None:
            self._arriving.sender.wait(self)

    def resume_writing(self) -> None:
        if self._arriving.sender is not None:
            self._arriving.sender.go_on(self)


class Listener(End):
    """The end at which a link is connected to: it reaches for the other."""

    def __init__(self, links: Links, source: str, target: str, *, port: int) -> None:
        self._there, self._back = Direction(links, source, target), Direction(links, target, source)
        super().__init__(self._there, self._back)
        self._dial = (links, source, target, port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        links = self._dial[0]
        task = asyncio.ensure_future(self._reach())
        links.dialing.add(task)
        task.add_done_callback(links.dialing.discard)

    async def _reach(self) -> None:
        links, source, target, port = self._dial
        await links.until_both_up(source, target)
        await asyncio.sleep(links.way(source, target).delay_s + links.way(target, source).delay_s)
        if self.transport.is_closing():
            return
        try:
            async with asyncio.timeout(DIAL_WITHIN_S):
                await asyncio.get_running_loop().create_connection(
                    lambda: End(self._back, self._there), "127.0.0.1", port
                )
        except OSError:
            self.transport.abort()


async def _listen(links: Links, control: int) -> None:
    server_of: dict[int, asyncio.Server] = {}
    loop = asyncio.get_running_loop()

    async def told(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            command = orjson.loads(line)
            for source, target, here, there in command.get("links", ()):
                # Bound by name: each link has its own.
                def make(source: str = source, target: str = target, there: int = there) -> Listener:
                    return Listener(links, source, target, port=there)

                server_of[here] = await loop.create_server(make, "127.0.0.1", here)
            if "ways" in command:
                links.set({(source, target): Way(**way) for source, target, way in command["ways"]})
            links.reset({(source, target) for source, target in command.get("reset", ())})
            writer.write(b"done\n")

    server = await asyncio.start_server(told, "127.0.0.1", control, limit=CONTROL_MAX_BYTES)
    await server.serve_forever()


def serve(control: int, seed: int) -> None:
    """Carry bytes until the process is ended, as it is told on a port."""
    uvloop.run(_listen(Links(random.Random(seed)), control))
