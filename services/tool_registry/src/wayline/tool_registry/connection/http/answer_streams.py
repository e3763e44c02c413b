"""Read the body of an answer as one message, or as events that each hold one, and pass on what the library can read.

A module of its own, because httpx2 takes a while to import.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2

from wayline.tool_registry.calls.server_answers import BROKE
from wayline.tool_registry.connection.http.asked_messages import AskedMessage
from wayline.tool_registry.connection.http.bytes_in_flight import TOO_MANY, BytesInFlight, HeldBytes
from wayline.tool_registry.connection.http.pace import LINE_BYTES, PIECE_BYTES
from wayline.tool_registry.connection.readable_messages import Proof, own_error, readable

HEAD_BYTES = 1024
"""Of an answer for which there is no room: enough to see whether it is a result."""


@dataclass(frozen=True)
class AnswerLimits:
    """What the answers of one server may take."""

    call_bytes: int
    """Of the answer to a call; more is not read."""
    result_bytes: int
    """Of the text of its result; more is cut before anything else looks at it."""
    message_bytes: int
    """Of another answer, such as a list, and of an event."""
    in_flight: BytesInFlight

    def most(self, asked: AskedMessage | None) -> int:
        """Return how many bytes of the answer to a message are read."""
        return self.call_bytes if asked is not None and asked.is_call else self.message_bytes


class MessageBody(httpx2.AsyncByteStream):
    """The body of an answer to one request: read up to a limit, and passed on as one message."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, limits: AnswerLimits, asked: AskedMessage, *, why_unread: str = ""
    ) -> None:
        """Take the server's body; of one with a reason for it nothing is read."""
        self._inner = inner
        self._limits = limits
        self._asked = asked
        self._why_unread = why_unread

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._limits.in_flight.holding() as held:
            body, why = (b"", self._why_unread) if self._why_unread else await self._read(held)
            message = None
            if body and (self._asked.is_call or not why):
                most = self._limits.result_bytes
                message = await readable(body, most=most, call_id=self._asked.id, why_cut=why)
        if message is None:
            proof = Proof.LOST if why == BROKE else Proof.UNKNOWN
            message = own_error(proof, why or "the server's answer is no answer to the request", call_id=self._asked.id)
        yield message

    async def aclose(self) -> None:
        """Close the server's body."""
        await self._inner.aclose()

    async def _read(self, held: HeldBytes) -> tuple[bytes, str]:
        """Return what could be read of the body, and why not all of it."""
        body, most = bytearray(), self._limits.most(self._asked)
        try:
            async for part in self._inner:
                if len(body) + len(part) > most:
                    body += part[: most - len(body)]
                    return bytes(body), f"the server's answer has more than {most} bytes"
                if not held.take(len(part)):
                    body += part[: max(0, HEAD_BYTES - len(body))]
                    return bytes(body), TOO_MANY
                body += part
        except httpx2.TransportError:
            return bytes(body), BROKE
        return bytes(body), ""


@dataclass
class _Event:
    """An event while its lines come."""

    lines: list[bytes] = field(default_factory=list)
    line: list[bytes] = field(default_factory=list)
    """The pieces of the line that has not ended."""
    line_bytes: int = 0
    """Of it, with what is not kept."""
    kept_bytes: int = 0
    why_cut: str = ""

    def add(self, piece: bytes, most: int) -> None:
        """Add a piece of a line, as much of it as may be kept."""
        self.line_bytes += len(piece)
        if self.why_cut:
            piece = piece[: max(0, HEAD_BYTES - self.kept_bytes)]
        elif self.kept_bytes + len(piece) > most:
            piece, self.why_cut = piece[: most - self.kept_bytes], f"the server's answer has more than {most} bytes"
        self.kept_bytes += len(piece)
        self.line.append(piece)

    def end_line(self) -> bool:
        """End a line, and return whether it is empty: so the event has ended, too."""
        is_empty = not self.line_bytes
        if kept := b"".join(self.line):
            self.lines.append(kept)
        self.line, self.line_bytes = [], 0
        return is_empty

    @property
    def data(self) -> bytes | None:
        """Return the data of the event; None: it has none, or is no message."""
        lines = [line[5:].removeprefix(b" ") for line in self.lines if line.startswith(b"data:")]
        names = [line[6:].strip() for line in self.lines if line.startswith(b"event:")]
        return b"\n".join(lines) if any(lines) and names in ([], [b"message"]) else None


class EventStream(httpx2.AsyncByteStream):
    """A stream of events: the data of each is passed on as one message, and what is too long is cut."""

    def __init__(self, inner: httpx2.AsyncByteStream, limits: AnswerLimits, asked: AskedMessage | None) -> None:
        """Take the server's stream and the message that it answers; None: it answers several."""
        self._inner = inner
        self._limits = limits
        self._call_id = None if asked is None else asked.id
        self._most = limits.most(asked)
        self._event = _Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._limits.in_flight.holding() as held:
            after_return = False
            try:
                async for part in self._inner:
                    if not held.take(len(part)):
                        self._event.why_cut = self._event.why_cut or TOO_MANY
                    # A line may end in two characters, which come in two parts.
                    begun = part[1:] if after_return and part.startswith(b"\n") else part
                    after_return = part.endswith(b"\r")
                    pieces = begun.splitlines(keepends=True)
                    await self._limits.in_flight.pace.spend(LINE_BYTES * (len(pieces) - 1))
                    for piece in pieces:
                        line = piece.rstrip(b"\r\n")
                        self._event.add(line, self._most)
                        if len(line) < len(piece) and self._event.end_line():
                            await self._limits.in_flight.pace.spend(max(0, PIECE_BYTES - self._event.kept_bytes))
                            yield await self._passed_on()
                            held.give_back()
            except httpx2.TransportError:
                # What has come of it may be the whole of a message.
                self._event.why_cut = self._event.why_cut or BROKE
                yield await self._passed_on()
                raise
            yield await self._passed_on()

    async def aclose(self) -> None:
        """Close the server's stream."""
        await self._inner.aclose()

    async def _passed_on(self) -> bytes:
        """Return the event that has come as the library reads it, and begin the next one."""
        event, self._event = self._event, _Event()
        event.end_line()
        if event.data is None:
            return b"\n".join(event.lines) + b"\n\n"
        most = self._limits.result_bytes
        message = await readable(event.data, most=most, call_id=self._call_id, why_cut=event.why_cut)
        about = [line for line in event.lines if not line.startswith(b"data:")]
        return b"\n".join([*about, *([] if message is None else [b"data: " + message])]) + b"\n\n"
