"""How an installation reaches the internet: through a proxy of its own, with a certificate authority of its own.

A name is looked up first where that can be done here, so that no name of the inside goes to the proxy, and what the
policy opens of the inside is reached past it. Which address the proxy connects to is its own affair, and so is what it
refuses.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import httpcore2
import httpx2

from wayline.guarded_http.addresses import Address
from wayline.guarded_http.guarded_transport import (
    CheckedConnections,
    GuardedConnections,
    GuardedTransport,
    Resolver,
    certificates,
    check_url,
    host_and_port,
    resolve,
)
from wayline.guarded_http.policy import AddressPolicy, address_of

KNOWN_WITHIN_S = 2.0
"""How long a name is looked up that a proxy is asked for."""
HEAD_MAX_BYTES = 32 * 1024
"""Of a proxy's answer to a request for a tunnel."""


@dataclass(frozen=True, slots=True)
class Outbound:
    """A proxy and certificate authorities, where an installation has some."""

    proxy: str | None = field(default=None, repr=False)
    """`http://proxy.example:3128`, perhaps with a user and a password."""
    ca_file: str | None = None
    """Trusted beside the public certificate authorities."""

    def transport(
        self,
        policy: AddressPolicy,
        *,
        resolver: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        connections_max: int = 100,
        keepalive_max: int = 20,
    ) -> GuardedTransport | ProxiedTransport:
        """Return a transport that a policy guards."""
        context = ssl_context or certificates(self.ca_file)
        sizes = {"connections_max": connections_max, "keepalive_max": keepalive_max}
        direct = GuardedTransport(policy, resolver=resolver, ssl_context=context, **sizes)
        if self.proxy is None:
            return direct
        proxied = httpx2.AsyncHTTPTransport(
            verify=context,
            trust_env=False,
            proxy=self.proxy,
            limits=httpx2.Limits(max_connections=connections_max, max_keepalive_connections=keepalive_max),
        )
        return ProxiedTransport(direct, proxied, policy, resolver=resolver)

    def connections(self, policy: AddressPolicy, resolver: Resolver) -> CheckedConnections | ProxiedConnections:
        """Return what opens connections that a policy guards."""
        direct = CheckedConnections(policy, resolver)
        if self.proxy is None:
            return direct
        return ProxiedConnections(direct, self.proxy, policy, resolver, ssl_context=certificates(self.ca_file))


class Routes:
    """Decides what goes past the proxy."""

    def __init__(self, policy: AddressPolicy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver

    async def is_direct(self, host: str, port: int) -> bool:
        """Return whether a host is one of the inside that is opened. Raises Blocked for others of the inside."""
        addresses = await self._known(host, port)
        for address in addresses:
            self._policy.check_address(host, port, address)
        return any(self._policy.opens(host, port, address) for address in addresses)

    async def _known(self, host: str, port: int) -> list[Address]:
        """Return the addresses of a host as far as they are known here: many networks leave names to their proxy."""
        if (literal := address_of(host)) is not None:
            return [literal]
        try:
            async with asyncio.timeout(KNOWN_WITHIN_S):
                return await self._resolver(host, port)
        except (OSError, TimeoutError):
            return []


class ProxiedTransport(httpx2.AsyncBaseTransport):
    """Sends requests through an installation's proxy, or past it."""

    def __init__(
        self,
        direct: GuardedTransport,
        proxied: httpx2.AsyncHTTPTransport,
        policy: AddressPolicy,
        *,
        resolver: Resolver | None,
    ) -> None:
        self._direct = direct
        self._proxied = proxied
        self._policy = policy
        self._routes = Routes(policy, resolver or resolve)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises Blocked or InvalidUrl, or what httpx2 raises."""
        check_url(request.url, self._policy)
        if await self._routes.is_direct(*host_and_port(request.url)):
            return await self._direct.handle_async_request(request)
        try:
            return await self._proxied.handle_async_request(request)
        except httpx2.ProxyError as error:
            # Of a tunnel that the proxy refused: nothing went further.
            raise httpx2.ConnectError(f"the installation's proxy: {error}", request=request) from None

    async def aclose(self) -> None:
        await self._direct.aclose()
        await self._proxied.aclose()


class ProxiedConnections(GuardedConnections):
    """Opens connections through tunnels of an installation's proxy, or past it."""

    def __init__(
        self,
        direct: CheckedConnections,
        proxy: str,
        policy: AddressPolicy,
        resolver: Resolver,
        *,
        ssl_context: ssl.SSLContext,
    ) -> None:
        super().__init__(policy)
        self._direct = direct
        self._proxy = httpx2.URL(proxy)
        self._routes = Routes(policy, resolver)
        self._ssl_context = ssl_context

    async def connect(
        self, name: str, port: int, within_s: float, local_address: str | None, options: Iterable[Any] | None
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to a host, through a tunnel unless it is inside. Raises Blocked, or what httpcore2 raises."""
        if await self._routes.is_direct(name, port):
            return await self._direct.connect(name, port, within_s, local_address, options)
        stream = await self._connections.connect_tcp(
            self._proxy.host, self._proxy.port or 80, within_s, local_address, options
        )
        try:
            if self._proxy.scheme == "https":
                stream = await stream.start_tls(self._ssl_context, self._proxy.host, within_s)
            await self._tunnel(stream, name, port, within_s=within_s)
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def _tunnel(self, stream: httpcore2.AsyncNetworkStream, host: str, port: int, *, within_s: float) -> None:
        """Ask the proxy for a tunnel. Raises ConnectError where it refuses."""
        to = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {to} HTTP/1.1", f"Host: {to}"]
        if self._proxy.userinfo:
            who = unquote(self._proxy.userinfo.decode("ascii"))
            lines.append(f"Proxy-Authorization: Basic {b64encode(who.encode()).decode()}")
        await stream.write("\r\n".join([*lines, "", ""]).encode(), within_s)
        head = b""
        while b"\r\n\r\n" not in head and len(head) < HEAD_MAX_BYTES:
            if not (piece := await stream.read(HEAD_MAX_BYTES, within_s)):
                break
            head += piece
        first = head.partition(b"\r\n")[0].split(b" ", 2)
        # In a tunnel the client speaks first: what comes before that is not the host's answer.
        if len(first) < 2 or not first[1].startswith(b"2") or not head.endswith(b"\r\n\r\n"):
            status = first[1][:3].decode("ascii", "replace") if len(first) > 1 else "no answer"
            raise httpcore2.ConnectError(f"the installation's proxy: {status}")
