"""A proxy for a browser on this machine: through it a page reaches what a policy lets it reach, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import httpcore2
import httpx2

from wayline.guarded_http.errors import Blocked, GuardedRequestError, InvalidUrl
from wayline.guarded_http.policy import AddressPolicy
from wayline.guarded_http.transport import CONNECT_S, CheckedConnections, Resolver, check_url, resolve

HEAD_MAX_BYTES: Final = 32 * 1024
PIECE_BYTES: Final = 64 * 1024
CONNECTIONS_MAX: Final = 64
IDLE_S: Final = 30.0
"""How long a connection may be silent."""
_TUNNELLED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_HOP_HEADERS: Final = (b"proxy-", b"connection:", b"keep-alive:")
FAILURES = (httpcore2.NetworkError, httpcore2.TimeoutException, OSError, asyncio.IncompleteReadError)


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a request goes, and what is sent there first."""

    host: str
    port: int
    head: bytes
    """Empty for a tunnel: its client speaks TLS with the host itself."""


class GuardedProxy:
    """Passes on what a browser asks for, until it has brought as many bytes as it may.

    Each connection resolves its host once, checks all addresses, and connects to one of those: pages that rebind their
    name to an inside address, and redirects and scripts that lead there, gain nothing.
    """

    def __init__(self, policy: AddressPolicy, *, bytes_max: int, resolver: Resolver | None = None) -> None:
        self._policy = policy
        self._connections = CheckedConnections(policy, resolver or resolve)
        self._bytes_left = bytes_max
        self._open = asyncio.Semaphore(CONNECTIONS_MAX)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Serve on a free port of this machine, and close every connection at the end."""
        tasks = set[asyncio.Task[None]]()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=HEAD_MAX_BYTES)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._open:
                await self._answer(reader, writer)
        except FAILURES:
            # The browser shows the page as broken; there is nobody else to tell.
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(IDLE_S):
                target = _target(await reader.readuntil(b"\r\n\r\n"), self._policy)
            upstream = await self._connections.connect_tcp(target.host, target.port, CONNECT_S)
        except GuardedRequestError as error:
            writer.write(_refusal(403, str(error)))
            return
        except (asyncio.LimitOverrunError, *FAILURES) as error:
            writer.write(_refusal(502, f"not connected ({type(error).__name__})"))
            return
        try:
            if target.head:
                await upstream.write(target.head, IDLE_S)
            else:
                writer.write(_TUNNELLED)
            sending = asyncio.ensure_future(self._send(reader, upstream))
            try:
                await self._bring(upstream, writer)
            finally:
                sending.cancel()
                with suppress(asyncio.CancelledError, *FAILURES):
                    await sending
        finally:
            await upstream.aclose()

    async def _send(self, reader: asyncio.StreamReader, upstream: httpcore2.AsyncNetworkStream) -> None:
        while piece := await reader.read(PIECE_BYTES):
            await upstream.write(piece, IDLE_S)

    async def _bring(self, upstream: httpcore2.AsyncNetworkStream, writer: asyncio.StreamWriter) -> None:
        while self._bytes_left > 0 and (piece := await upstream.read(PIECE_BYTES, IDLE_S)):
            self._bytes_left -= len(piece)
            writer.write(piece)
            await writer.drain()


def _target(head: bytes, policy: AddressPolicy) -> _Target:
    """Read the head of a proxied request. Raises InvalidUrl or Blocked."""
    first, _, rest = head.partition(b"\r\n")
    try:
        method, address, version = first.decode("ascii").split(" ")
        url = httpx2.URL(f"https://{address}" if method == "CONNECT" else address)
    except (ValueError, httpx2.InvalidURL):
        raise InvalidUrl("this is no request to a proxy") from None
    check_url(url, policy)
    if method != "CONNECT" and url.scheme != "http":
        raise Blocked("only http is passed on without a tunnel")
    port = url.port or (443 if url.scheme == "https" else 80)
    host = url.raw_host.decode("ascii")
    if method == "CONNECT":
        return _Target(host, port, b"")
    kept = [line for line in rest.split(b"\r\n") if line and not line.lower().startswith(_HOP_HEADERS)]
    lines = [b" ".join((method.encode(), url.raw_path, version.encode())), *kept, b"Connection: close", b"", b""]
    return _Target(host, port, b"\r\n".join(lines))


def _refusal(status: int, why: str) -> bytes:
    body = why.encode("utf-8", "replace")
    return b"HTTP/1.1 %d Refused\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (status, len(body), body)
