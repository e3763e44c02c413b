"""The lines that a program writes, each held only as far as it can be a message."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final, cast

MESSAGE_BEGIN: Final = b'{"jsonrpc"'
HEAD_BYTES: Final = 4096
"""Of a line, in which a message begins: some programs write half a line of their own before it."""
AHEAD_BYTES: Final = 256 * 1024
"""Of lines that nobody has taken; a program that writes more waits."""
LINE_BYTES: Final = 64
"""What a line counts for at least: millions of empty ones take memory too."""


@dataclass(frozen=True)
class Line:
    """A line, or as much of it as is kept."""

    text: bytes
    length: int
    """Of all of it."""

    @property
    def is_cut(self) -> bool:
        """Return whether not all of it was kept."""
        return self.length > len(self.text)


class LineTooLong(Exception):
    """A line that has not ended where any must."""


class ProgramLines(asyncio.Protocol):
    """Cuts what a program writes into lines, in time that does not grow with a line's length."""

    def __init__(self, *, kept_max: int, line_max: int) -> None:
        """Keep of a message `kept_max` bytes, of anything else its head; a line of more than `line_max` is an end."""
        self._kept_max = kept_max
        self._line_max = line_max
        self._begin_line()
        self._lines: deque[Line] = deque()
        self._waiting_bytes = 0
        self._more = asyncio.Event()
        self._has_ended = False
        self._is_paused = False
        self._is_unread = False
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the pipe."""
        # uvloop's are of no class of asyncio's.
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Take a piece of the output."""
        if self._is_unread:
            return
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._add(piece)
            self._end_line()
        self._add(rest)
        if self._waiting_bytes > AHEAD_BYTES and self._transport is not None and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        if self._lines or self._length > self._line_max:
            self._more.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take the end of the output."""
        self._has_ended = True
        self._more.set()

    async def next(self) -> Line | None:
        """Return the next line, also one that the output ends in; None: it has ended. Raises LineTooLong."""
        while not self._lines:
            if self._length > self._line_max:
                raise LineTooLong
            if self._has_ended and not self._length:
                return None
            if self._has_ended:
                self._end_line()
                break
            self._more.clear()
            await self._more.wait()
        line = self._lines.popleft()
        self._waiting_bytes -= LINE_BYTES + len(line.text)
        if self._is_paused and self._waiting_bytes <= AHEAD_BYTES // 2 and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return line

    async def drain(self) -> None:
        """Read to the end of the output without keeping any of it: a program that cannot write does not see its end."""
        self._is_unread = True
        self._lines.clear()
        if self._is_paused and self._transport is not None:
            self._transport.resume_reading()
        while not self._has_ended:
            self._more.clear()
            await self._more.wait()

    def _add(self, piece: bytes) -> None:
        self._length += len(piece)
        if kept := piece[: max(0, self._most - self._kept)]:
            self._pieces.append(kept)
            self._kept += len(kept)
            if not self._is_judged and self._kept >= HEAD_BYTES:
                self._judge()

    def _judge(self) -> None:
        """Keep no more than the head of a line that can be no message."""
        self._is_judged = True
        head = b"".join(self._pieces)
        if not head.startswith(b"{") and MESSAGE_BEGIN not in head:
            self._pieces = [head[:HEAD_BYTES]]
            self._kept = self._most = HEAD_BYTES

    def _end_line(self) -> None:
        line = Line(b"".join(self._pieces), self._length)
        self._lines.append(line)
        self._waiting_bytes += LINE_BYTES + len(line.text)
        self._begin_line()

    def _begin_line(self) -> None:
        self._pieces: list[bytes] = []
        self._kept = self._length = 0
        self._most = self._kept_max
        self._is_judged = False
