"""Parse HTTP fast, and let no connection hold more than a share: of bytes, of time, of places.

The parser itself has no limits, and the server only one: how long a connection may rest between two requests.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = structlog.get_logger()

HEAD_MAX_BYTES = 64 * 1024
"""Of the request line and the headers, and of the trailers behind a body; one read of the socket may go beyond it."""
OWN_FILES: Final = 256
"""File descriptors that the process needs beside its connections: of the bus, of Postgres, of files."""
CONNECTIONS_MAX: Final = 10_000
ADDRESS_SHARE: Final = 0.5
READ_MIN_BYTES_S: Final = 4 * 1024
"""Of a large answer, which is written at once and may be read over a slow line for long."""


@dataclass
class Places:
    """The connections of a server: how many there may be, of one address too, and how long each may keep it waiting."""

    most: int = CONNECTIONS_MAX
    per_address: int = int(CONNECTIONS_MAX * ADDRESS_SHARE)
    head_within_s: float = 15.0
    """From the first byte of a request, or from the connection, to the end of its head."""
    body_silent_s: float = 30.0
    """Without a byte of a body that is being read."""
    write_stalled_s: float = 30.0
    """With the client reading less than `READ_MIN_BYTES_S` of what waits for it."""
    idle_s: int = 5
    """Between two requests; less where another connection needs the place."""
    taken: int = 0
    by_address: Counter[str] = field(default_factory=Counter)
    idle: dict[str, dict[BoundedHttp, None]] = field(default_factory=dict)
    """The connections that rest between two requests, by address, the longest first."""

    @classmethod
    def within_files(cls, *, most: int = CONNECTIONS_MAX, per_address: int | None = None, **times: Any) -> Places:
        """Return places for which the process has file descriptors; it takes as many as the system allows it."""
        most = max(1, min(most, raise_file_limit(most + OWN_FILES) - OWN_FILES))
        return cls(most, min(per_address or int(most * ADDRESS_SHARE) or 1, most), **times)

    def take(self, address: str) -> bool:
        """Take a place for a connection; False: there is none, or its address has its share."""
        if self.by_address[address] >= self.per_address:
            self._close_idle(address)
        elif self.taken >= self.most and self.idle:
            self._close_idle(max(self.idle, key=lambda one: len(self.idle[one])))
        if self.taken >= self.most or self.by_address[address] >= self.per_address:
            return False
        self.taken += 1
        self.by_address[address] += 1
        return True

    def rest(self, address: str, connection: BoundedHttp) -> None:
        """Note that a connection waits for its next request."""
        self.idle.setdefault(address, {})[connection] = None

    def wake(self, address: str, connection: BoundedHttp) -> None:
        """Note that a connection has its next request, or ends."""
        resting = self.idle.get(address, {})
        resting.pop(connection, None)
        if not resting:
            self.idle.pop(address, None)

    def _close_idle(self, address: str) -> None:
        """Close the connection of an address that has rested longest."""
        if address in self.idle:
            next(iter(self.idle[address])).give_up_place()

    def leave(self, address: str) -> None:
        """Give a place back."""
        self.taken -= 1
        self.by_address[address] -= 1
        if not self.by_address[address]:
            del self.by_address[address]


def raise_file_limit(wanted: int) -> int:
    """Allow this process so many open files, as far as the system lets it; return how many it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        return allowed
    return wanted if soft == resource.RLIM_INFINITY else soft


class UnreadAnswer:
    """Ends a connection whose client reads nothing, or next to nothing, of what waits for it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, *, stalled_s: float) -> None:
        self._transport = transport
        self._loop = loop
        self._stalled_s = stalled_s
        self._look: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Look from now on whether what waits becomes less."""
        waits = self._transport.get_write_buffer_size()
        self._look = self._loop.call_later(self._stalled_s, self._go_on, waits)

    def end(self) -> None:
        """Look no longer: nearly all of it was read."""
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _go_on(self, waited: int) -> None:
        if waited - self._transport.get_write_buffer_size() < READ_MIN_BYTES_S * self._stalled_s:
            # Not closed, which would wait for what the client does not read.
            self._transport.abort()
        else:
            self.begin()


class BoundedHttp(HttpToolsProtocol):
    """A connection that is closed when its request does not come, or its answer is not read."""

    _head_bytes = 0
    """Received since the last piece of a body, or since the last request ended."""

    def __init__(self, *args: Any, places: Places | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        self._places = places or Places()
        self._address: str | None = None
        self._due: asyncio.TimerHandle | None = None
        self._unread: UnreadAnswer | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if not self._places.take(address):
            log.warning("a connection was refused: all places are taken", address=address, taken=self._places.taken)
            transport.abort()
            return
        self._address = address
        self._unread = UnreadAnswer(transport, self.loop, stalled_s=self._places.write_stalled_s)
        self._wait(self._places.head_within_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        if self._unread is not None:
            self._unread.end()
        self._leave()
        super().connection_lost(exc)

    def give_up_place(self) -> None:
        """Close the connection, which rests, for one that needs its place."""
        self._leave()
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._address is None:
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes <= HEAD_MAX_BYTES or self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            self.send_400_response(f"The headers of a request have at most {HEAD_MAX_BYTES} bytes.")
        else:
            # An answer is being written: another one in the middle of it would be read as a part of it.
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait(self._places.head_within_s)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self._address is not None:
            self._places.wake(self._address, self)
        self._wait(self._places.body_silent_s)

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)
        self._wait(self._places.body_silent_s)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._wait(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._address is not None and self.cycle.response_complete and not self.transport.is_closing():
            self._places.rest(self._address, self)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is not None:
            self._unread.begin()

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.end()
        super().resume_writing()

    def _leave(self) -> None:
        if self._address is not None:
            self._places.wake(self._address, self)
            self._places.leave(self._address)
            self._address = None

    def _wait(self, within_s: float | None) -> None:
        """Close the connection unless the next piece of its request comes in time; None: nothing is waited for."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if within_s is not None and not self.transport.is_closing():
            self._due = self.loop.call_later(within_s, self._give_up, within_s)

    def _give_up(self, within_s: float) -> None:
        if self.flow.read_paused:
            # It is us who read no further.
            self._wait(within_s)
        else:
            self.transport.abort()
