"""nats-py's client with a quicker encoder and decoder of headers: a job's messages carry about a hundred of them.

And one that goes on reading where a round trip was given up before its answer came, that can leave a server for
another, and that acks a batch at once.

What it sends and reads is to the byte what nats-py's own would be; where a header is unusual, nats-py's own is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from nats.aio.client import Client, Srv
from nats.aio.msg import Msg

NAMES_MAX = 1_024
"""Names of headers that are remembered as good or bad; a client may send any."""
NAME_CHARS_MAX = 64
"""Longer ones are left to nats-py."""

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_BLANK = " \t\n\r\x0b\f"
"""What `bytes.strip` takes away; `str.strip` takes more."""


class BusClient(Client):
    """A connection to the bus."""

    _left: Srv | None = None
    """The server that was left last: the others are tried before it."""

    async def leave_server(self) -> None:
        """Break the connection and connect to another server, where there is one."""
        if not self.is_connected:
            return
        self._left = self._current_server
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            # Closing waits until all is written, and the other end may read no more.
            writer.transport.abort()
        await self.force_reconnect()

    async def _select_next_server(self) -> None:
        self._server_pool.sort(key=lambda server: server is self._left)
        self._left = None
        await super()._select_next_server()

    async def _send_publish(
        self, subject: str, reply: str, payload: bytes, payload_size: int, headers: dict[str, Any] | None
    ) -> None:
        encoded = b"" if headers is None else encode_headers(headers)
        if encoded is None or not subject:
            return await super()._send_publish(subject, reply, payload, payload_size, headers)
        if encoded:
            size = len(encoded)
            command = f"HPUB {subject} {reply} {size} {size + payload_size}\r\n".encode()
        else:
            command = f"PUB {subject} {reply} {payload_size}\r\n".encode()
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += payload_size
        await self._send_command(b"".join((command, encoded, payload, b"\r\n")))
        if self._flush_queue is not None and self._flush_queue.empty():
            await self._flush_pending()

    async def ack_all(self, messages: Sequence[Msg]) -> None:
        """Ack delivered messages with one write, as each would by its own `ack`. Raises nats-py's errors."""
        unacked = [message for message in messages if message.reply and not message.is_acked]
        if not unacked:
            return
        first, *others = unacked
        # With all of nats-py's checks of the connection.
        await first.ack()
        if others:
            self.stats["out_msgs"] += len(others)
            await self._send_command("".join([f"PUB {message.reply}  0\r\n\r\n" for message in others]).encode())
        for message in others:
            message._ackd = True  # pyright: ignore[reportPrivateUsage]

    async def _process_pong(self) -> None:
        if not self._pongs or not self._pongs[0].done():
            return await super()._process_pong()
        # Who asked has stopped waiting. nats-py's own would raise, end its reading and be deaf from then on.
        self._pongs.pop(0)
        self._pongs_received += 1
        self._pings_outstanding = 0

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        decoded = decode_headers(raw)
        return Client._parse_header_lines(raw) if decoded is None else decoded  # pyright: ignore[reportPrivateUsage]


def encode_headers(headers: Mapping[str, str]) -> bytes | None:
    """Encode headers as they travel; None: one of them is unusual."""
    # Here and below without a function of ours for each name: a job's messages have about two hundred.
    if max(map(len, headers), default=0) > NAME_CHARS_MAX or not all(map(_is_name, headers)):
        return None
    lines = "".join([f"{name}: {value.strip()}\r\n" for name, value in headers.items()])
    # One look at all of them: a value with a line break would begin a header of its own.
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
        return None
    return f"NATS/1.0\r\n{lines}\r\n".encode()


def decode_headers(raw: bytes) -> dict[str, str] | None:
    """Decode the lines of a received header block; None: one of them is unusual."""
    if not raw.isascii():
        return None
    decoded: dict[str, str] = {}
    for line in raw.decode("ascii").split("\r\n"):
        name, colon, value = line.partition(":")
        if not colon:
            continue
        if len(name) > NAME_CHARS_MAX or not _is_name(name):
            return None
        decoded[name] = value.strip(_BLANK)
    return decoded


@lru_cache(NAMES_MAX)
def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None
