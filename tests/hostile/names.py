"""Hosts of the hostile tenant whose names are answered by its own name server, or by none."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from wayline.chassis import Bus
from wayline.contracts.server_config import ServerConfig
from wayline.contracts.tools import Effect

from .attack import outcome

NAME_SERVER = ("127.0.0.1", 53)
A, AAAA, CNAME = 1, 28, 5
TIMEOUT_S = 3.0
NO_SUCH_NAME = 3
LOOPBACK, METADATA = "127.0.0.1", "169.254.169.254"


@dataclass(frozen=True)
class HostileName:
    """A server at a host whose first label says how its name is answered."""

    label: str
    what: str
    outcomes: Sequence[str] = ("away",)

    @property
    def name(self) -> str:
        """Say in a few words what it is."""
        return f"name: {self.what}"

    async def run(self, bus: Bus, tenant: str, *, job: str) -> str:
        """Let the tenant save the server, and return what came of it."""
        url = f"http://{self.label}.hostile.test:9/mcp"
        config = ServerConfig(url=url, effects={"act": Effect.READ}, timeout_s=TIMEOUT_S)
        return await outcome(bus, tenant, config, {}, job=job)


NAMES = [
    HostileName("silent", "no answer"),
    HostileName("missing", "no such name"),
    HostileName("metadata", "the metadata address"),
    HostileName("many", "four hundred addresses"),
    HostileName("ring", "an alias of itself"),
    HostileName("garbage", "an answer that is no DNS"),
    HostileName("cut", "half an answer"),
]


class NameServer(asyncio.DatagramProtocol):
    """A name server that answers by a name's first label."""

    def connection_made(self, transport: Any) -> None:
        """Keep the socket."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer one question, or do not."""
        label = data[13 : 13 + data[12]].decode(errors="replace")
        end = data.index(b"\0", 12) + 5
        question, (kind,) = data[12:end], struct.unpack_from(">H", data, end - 4)
        answers = [_address(METADATA)] if kind == A else []
        if label == "silent":
            return
        if label == "garbage":
            self._transport.sendto(b"\xff" * 40, addr)
            return
        if label == "ring":
            answers = [struct.pack(">HHHLH", 0xC00C, CNAME, 1, 0, 2) + b"\xc0\x0c"]
        if label == "many" and kind == A:
            answers = [_address(f"10.0.{n // 250}.{n % 250 + 1}") for n in range(400)]
        code = NO_SUCH_NAME if label == "missing" else 0
        head = data[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, 0 if code else len(answers), 0, 0)
        reply = head + question + (b"" if code else b"".join(answers))
        self._transport.sendto(reply[: len(reply) - 7] if label == "cut" else reply, addr)


def _address(text: str) -> bytes:
    return struct.pack(">HHHLH", 0xC00C, A, 1, 0, 4) + socket.inet_aton(text)


@asynccontextmanager
async def name_server():
    """Answer names on the port of name servers, for which this process must be root."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(NameServer, local_addr=NAME_SERVER)
    try:
        yield
    finally:
        transport.close()
