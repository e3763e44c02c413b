"""A proxy for a program on this machine: through it the program reaches what a policy lets it, and nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import httpcore2
import httpx2

from wayline.guarded_http.errors import Blocked, GuardedRequestError, InvalidUrl
from wayline.guarded_http.guarded_transport import CONNECT_S, Resolver, check_url, resolve
from wayline.guarded_http.lookups import looked_up_for
from wayline.guarded_http.outbound import Outbound
from wayline.guarded_http.policy import AddressPolicy

HEAD_MAX_BYTES: Final = 32 * 1024
PIECE_BYTES: Final = 64 * 1024
CONNECTIONS_MAX: Final = 64
"""That are served at once."""
WAITING_MAX: Final = 64
"""Connections that wait for one of these to end; further ones are closed, as each is an open file of this process."""
IDLE_S: Final = 30.0
"""How long a connection may be silent, where its user says nothing else."""
_TUNNELLED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_OWN_HEADERS: Final = (b"host:", b"proxy-", b"connection:", b"keep-alive:")
"""Not passed on of a request to a proxy: the host is the one that was checked, whatever the client calls it."""
FAILURES = (httpcore2.NetworkError, httpcore2.TimeoutException, OSError, asyncio.IncompleteReadError)


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a request goes, and what is sent there first."""

    host: str
    port: int
    head: bytes
    """Empty for a tunnel: its client speaks TLS with the host itself."""


class GuardedProxy:
    """Passes on what a program asks for, until it has brought as many bytes as it may.

    Each connection resolves its host once, checks all addresses, and connects to one of those: pages that rebind their
    name to an inside address, and redirects and scripts that lead there, gain nothing.
    """

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        bytes_max: int | None,
        hosts: Iterable[str] | None = None,
        idle_s: float = IDLE_S,
        resolver: Resolver | None = None,
        outbound: Outbound | None = None,
        owner: str = "",
    ) -> None:
        """Take what may be reached: of the policy's addresses those of `hosts`, where it is not None.

        A host is a name, an address, or `*.` before a name for all that is below it, each perhaps with one port.
        `owner`: the tenant whose share of look-ups is used.
        """
        self._owner = owner
        self._policy = policy
        self._hosts = None if hosts is None else tuple(one.lower() for one in hosts)
        self._idle_s = idle_s
        self._connections = (outbound or Outbound()).connections(policy, resolver or resolve)
        self._bytes_left = bytes_max
        self._open = asyncio.Semaphore(CONNECTIONS_MAX)

    @asynccontextmanager
    async def serving(self, listener: socket.socket | None = None) -> AsyncIterator[int]:
        """Serve on a socket, else on a free port of this machine, and close every connection at the end."""
        tasks = set[asyncio.Task[None]]()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(tasks) >= CONNECTIONS_MAX + WAITING_MAX:
                writer.transport.abort()
                return
            task = asyncio.ensure_future(self._serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        if listener is None:
            listener = socket.create_server(("127.0.0.1", 0))
        server = await asyncio.start_server(accept, sock=listener, limit=HEAD_MAX_BYTES)
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
            # A browser shows the page as broken; there is nobody else to tell.
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(IDLE_S):
                target = _target(await reader.readuntil(b"\r\n\r\n"), self._policy)
            self._require_host(target)
            with looked_up_for(self._owner):
                upstream = await self._connections.connect_tcp(target.host, target.port, CONNECT_S)
        except GuardedRequestError as error:
            writer.write(_refusal(403, str(error)))
            return
        except (asyncio.LimitOverrunError, *FAILURES) as error:
            writer.write(_refusal(502, f"not connected ({type(error).__name__})"))
            return
        try:
            if target.head:
                await upstream.write(target.head, self._idle_s)
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

    def _has_bytes_left(self) -> bool:
        return self._bytes_left is None or self._bytes_left > 0

    def _require_host(self, target: _Target) -> None:
        """Refuse a host that is none of those named. Raises Blocked."""
        if self._hosts is None:
            return
        host = target.host.lower().removesuffix(".")
        if not any(_names(one, host, target.port) for one in self._hosts):
            raise Blocked(f"{host} may not be reached: it is none of the hosts that are allowed here")

    async def _send(self, reader: asyncio.StreamReader, upstream: httpcore2.AsyncNetworkStream) -> None:
        while piece := await reader.read(PIECE_BYTES):
            await upstream.write(piece, self._idle_s)

    async def _bring(self, upstream: httpcore2.AsyncNetworkStream, writer: asyncio.StreamWriter) -> None:
        while self._has_bytes_left() and (piece := await upstream.read(PIECE_BYTES, self._idle_s)):
            if self._bytes_left is not None:
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
    kept = [line for line in rest.split(b"\r\n") if line and not line.lower().startswith(_OWN_HEADERS)]
    first = b" ".join((method.encode(), url.raw_path, version.encode()))
    lines = [first, b"Host: " + url.netloc, *kept, b"Connection: close", b"", b""]
    return _Target(host, port, b"\r\n".join(lines))


def _names(pattern: str, host: str, port: int) -> bool:
    """Return whether a pattern is of a host and its port."""
    if pattern in (host, f"{host}:{port}"):
        return True
    return pattern.startswith("*.") and (host.endswith(pattern[1:]) or f"{host}:{port}".endswith(pattern[1:]))


def _refusal(status: int, why: str) -> bytes:
    body = why.encode("utf-8", "replace")
    return b"HTTP/1.1 %d Refused\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (status, len(body), body)
