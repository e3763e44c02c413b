"""The connection itself: a name is resolved once, all of its addresses are checked, and one of those is connected to.

Whatever sends through `GuardedTransport` is guarded: our own client, and a library that takes an `httpx2.AsyncClient`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from ipaddress import ip_address
from typing import Any, cast

import httpcore2
import httpx2

from wayline.guarded_http.addresses import Address
from wayline.guarded_http.errors import Blocked, InvalidUrl
from wayline.guarded_http.lookups import Lookups
from wayline.guarded_http.policy import AddressPolicy, address_of

Resolver = Callable[[str, int], Awaitable[list[Address]]]
"""Returns all addresses of a name; raises OSError."""

ADDRESSES_TRIED_MAX = 4
CONNECT_S = 10.0
_LOOKUPS = Lookups()
"""Of the process, because its threads are."""


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """An HTTP transport that reaches what a policy lets it reach.

    Without proxies of the environment: a proxy would resolve the name again, and reach what it likes.
    """

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        resolver: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        connections_max: int = 100,
        keepalive_max: int = 20,
    ) -> None:
        context = ssl_context or certificates()
        super().__init__(verify=context, trust_env=False)
        self._policy = policy
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=connections_max,
            max_keepalive_connections=keepalive_max,
            keepalive_expiry=5.0,
            http1=True,
            http2=False,
            network_backend=CheckedConnections(policy, resolver or resolve),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises Blocked or InvalidUrl, or what httpx2 raises."""
        check_url(request.url, self._policy)
        return await super().handle_async_request(request)


@cache
def certificates(ca_file: str | None = None) -> ssl.SSLContext:
    """Return what TLS connections trust, read once: reading it takes longer than a call. Raises OSError."""
    context = httpx2.create_ssl_context(trust_env=False)
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


class GuardedConnections(httpcore2.AsyncNetworkBackend):
    """Connects to hosts that a policy allows by their names; how is for each kind of connections to say."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        # The library types it as something else where anyio is missing.
        self._connections = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        name = host.removesuffix(".").lower()
        self._policy.check_host(name, port)
        return await self.connect(name, port, timeout or CONNECT_S, local_address, socket_options)

    async def connect(
        self, name: str, port: int, within_s: float, local_address: str | None, options: Iterable[Any] | None
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to a host whose name the policy allows. Raises Blocked, or what httpcore2 raises."""
        raise NotImplementedError

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise Blocked("sockets of this machine may not be used")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class CheckedConnections(GuardedConnections):
    """Connects to addresses that were checked, never to a name."""

    def __init__(self, policy: AddressPolicy, resolver: Resolver) -> None:
        super().__init__(policy)
        self._resolver = resolver

    async def connect(
        self, name: str, port: int, within_s: float, local_address: str | None, options: Iterable[Any] | None
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to one of a host's addresses, once all are checked. Raises Blocked, or what httpcore2 raises."""
        addresses = await self._addresses(name, port, within_s=within_s)
        # All of them: a name that has one address outside and one inside is an attack or a mistake.
        for address in addresses:
            self._policy.check_address(name, port, address)
        failure: Exception = httpcore2.ConnectError(f"{name} has no address")
        try:
            for address in addresses[:ADDRESSES_TRIED_MAX]:
                try:
                    return await self._connections.connect_tcp(str(address), port, within_s, local_address, options)
                except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                    failure = error
            raise failure
        finally:
            # Kept here it would keep itself, and with its frames the request.
            del failure

    async def _addresses(self, host: str, port: int, *, within_s: float) -> list[Address]:
        if (literal := address_of(host)) is not None:
            return [literal]
        try:
            async with asyncio.timeout(within_s):
                return await self._resolver(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"the name {host} was not resolved within {within_s:g} s") from None
        except OSError as error:
            raise httpcore2.ConnectError(f"the name {host} cannot be resolved") from error


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a name, by this machine's resolver. Raises OSError."""
    found = await _LOOKUPS.addresses(host, port)
    # A zone (fe80::1%eth0) is no part of an address; such an address is blocked without it, too.
    return list(dict.fromkeys(ip_address(str(one[4][0]).partition("%")[0]) for one in found))


def check_url(url: httpx2.URL, policy: AddressPolicy) -> None:
    """Refuse a URL by its form. Raises InvalidUrl or Blocked."""
    if url.scheme not in ("http", "https"):
        raise InvalidUrl(f"only http and https are fetched, not {url.scheme or 'a URL without a scheme'}")
    if not url.raw_host:
        raise InvalidUrl("the URL has no host")
    if url.userinfo:
        raise InvalidUrl("a URL with a user name or a password in it is not fetched: leave out what stands before @")
    policy.check_host(*host_and_port(url))


def host_and_port(url: httpx2.URL) -> tuple[str, int]:
    """Return the host of a URL in small letters, and its port."""
    port = url.port if url.port is not None else 443 if url.scheme == "https" else 80
    return url.raw_host.decode("ascii").removesuffix(".").lower(), port
