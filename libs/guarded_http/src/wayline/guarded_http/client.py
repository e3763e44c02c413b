"""One request with everything bounded: where it goes, how long it takes, how much it brings."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wayline.guarded_http.decompression import ACCEPTED, Unpacked, body_of
from wayline.guarded_http.errors import (
    BadStatus,
    Blocked,
    GuardedRequestError,
    InvalidUrl,
    NotConnected,
    TimedOut,
    TooLarge,
    TooManyRedirects,
    Undecodable,
    Unreachable,
)
from wayline.guarded_http.policy import AddressPolicy

if TYPE_CHECKING:
    import httpx2

    from wayline.guarded_http.guarded_transport import GuardedTransport, Resolver
    from wayline.guarded_http.outbound import ProxiedTransport

URL_CHARS_MAX = 4_096
NOT_SECRET = frozenset({"accept", "accept-language", "user-agent"})
"""The only headers that go along to another origin."""
USER_AGENT = "Wayline/0.1"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
Check = Callable[[str], Awaitable[None]]
"""Raises what stops a request to a URL."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request may take, with all of its redirects."""

    body_max_bytes: int = 10 * 1024 * 1024
    total_s: float = 20.0
    redirects_max: int = 5
    cut: bool = False
    """Return the beginning of a body that is too large, instead of nothing."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered, unpacked."""

    url: str
    """Where it came from at last."""
    status: int
    headers: Mapping[str, str]
    """By their names in small letters."""
    content: bytes
    redirects: tuple[str, ...] = ()
    """The URLs before the last one."""
    cut: bool = False
    """The content is the beginning of a body that is too large."""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class _Outgoing:
    method: str
    url: httpx2.URL
    headers: dict[str, str]
    content: bytes | None
    limits: Limits
    check: Check | None
    seen: tuple[str, ...] = field(default=())


class GuardedClient:
    """Sends requests to URLs that a model or a user chose."""

    def __init__(
        self,
        policy: AddressPolicy | None = None,
        *,
        limits: Limits | None = None,
        resolver: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        connections_max: int = 100,
        user_agent: str = USER_AGENT,
        proxy: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        """Take the policy; `proxy` and `ca_file`: see `Outbound`."""
        self._proxy, self._ca_file = proxy, ca_file
        self._policy = policy or AddressPolicy()
        self._limits = limits or Limits()
        self._resolver = resolver
        self._ssl_context = ssl_context
        self._connections_max = connections_max
        self._user_agent = user_agent
        self._opened: GuardedTransport | ProxiedTransport | None = None

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        check: Check | None = None,
    ) -> Answer:
        """Fetch a URL. Raises GuardedRequestError."""
        return await self.request("GET", url, headers=headers, limits=limits, check=check)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        limits: Limits | None = None,
        check: Check | None = None,
    ) -> Answer:
        """Send a request, and follow where it is redirected to, each hop checked anew. Raises GuardedRequestError.

        Only a request without a body follows a redirect: any other might act at a place that nobody named.
        `check` is called before each request with its URL, within the time limit; what it raises stops the chain.
        """
        limits = limits or self._limits
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        outgoing = _Outgoing(method, _parsed(url), lowered, content, limits, check)
        try:
            async with asyncio.timeout(limits.total_s):
                while True:
                    await self._check(outgoing)
                    answer = await self._send(outgoing)
                    if isinstance(answer, Answer):
                        return answer
                    outgoing = answer
        except TimeoutError:
            raise TimedOut(outgoing.url.host, after_s=limits.total_s) from None

    async def close(self) -> None:
        """Close what is open; a request after it opens anew."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.aclose()

    async def _check(self, outgoing: _Outgoing) -> None:
        if outgoing.check is None:
            return
        from wayline.guarded_http.guarded_transport import check_url

        # First by its form: `check` is told of no URL that is not fetched at all.
        check_url(outgoing.url, self._policy)
        await outgoing.check(str(outgoing.url))

    async def _send(self, outgoing: _Outgoing) -> Answer | _Outgoing:
        """Return the answer, or the request that it redirects to."""
        import httpx2

        host = outgoing.url.host
        own = {"user-agent": self._user_agent, "accept-encoding": ACCEPTED, "accept": "*/*"}
        request = httpx2.Request(
            outgoing.method,
            outgoing.url,
            headers=own | outgoing.headers,
            content=outgoing.content,
            # The whole has one limit: these are for what would outlive its cancellation.
            extensions={"timeout": dict.fromkeys(("connect", "read", "write", "pool"), outgoing.limits.total_s)},
        )
        try:
            response = await self._transport().handle_async_request(request)
            try:
                headers = {name.lower(): value for name, value in response.headers.items()}
                if response.status_code in _REDIRECTS and "location" in headers and outgoing.content is None:
                    return _redirected(outgoing, headers["location"])
                content, cut = await _body(response, host, headers, outgoing.limits)
            finally:
                await response.aclose()
        except GuardedRequestError:
            raise
        except (httpx2.ConnectTimeout, httpx2.ReadTimeout, httpx2.WriteTimeout, httpx2.PoolTimeout):
            raise TimedOut(host, after_s=outgoing.limits.total_s) from None
        except (httpx2.HTTPError, httpx2.StreamError, ssl.SSLError, OSError) as error:
            kind = NotConnected if isinstance(error, httpx2.ConnectError) else Unreachable
            raise kind(f"{host} could not be reached: {str(error) or type(error).__name__}") from error
        if response.status_code >= 400:
            raise BadStatus(host, response.status_code, headers=headers, content=content)
        return Answer(str(outgoing.url), response.status_code, headers, content, outgoing.seen, cut)

    def _transport(self) -> GuardedTransport | ProxiedTransport:
        if self._opened is None:
            # The HTTP library takes a while to import, and many processes never fetch anything.
            from wayline.guarded_http.outbound import Outbound

            self._opened = Outbound(self._proxy, self._ca_file).transport(
                self._policy,
                resolver=self._resolver,
                ssl_context=self._ssl_context,
                connections_max=self._connections_max,
                # Each request resolves and checks anew.
                keepalive_max=0,
            )
        return self._opened


def _redirected(outgoing: _Outgoing, location: str) -> _Outgoing:
    if len(outgoing.seen) >= outgoing.limits.redirects_max:
        raise TooManyRedirects(f"{outgoing.url.host} redirected more than {outgoing.limits.redirects_max} times")
    old, new = outgoing.url, _parsed(location, base=outgoing.url)
    same = (old.scheme, old.raw_host, _port(old)) == (new.scheme, new.raw_host, _port(new))
    kept = {name: value for name, value in outgoing.headers.items() if same or name in NOT_SECRET}
    if old.scheme == "https" and new.scheme == "http" and kept != outgoing.headers:
        raise Blocked(f"{old.host} redirected from https to http a request with credentials in it")
    return replace(outgoing, url=new, headers=kept, seen=(*outgoing.seen, str(old)))


async def _body(response: httpx2.Response, host: str, headers: Mapping[str, str], limits: Limits) -> tuple[bytes, bool]:
    """Return the body, and whether it is cut."""
    max_bytes = limits.body_max_bytes
    length = headers.get("content-length", "")
    if not limits.cut and length.isdecimal() and int(length[:20]) > max_bytes:
        raise TooLarge(host, max_bytes=max_bytes)
    encoding = headers.get("content-encoding", "")
    try:
        body = body_of(encoding, max_bytes=max_bytes)
    except ValueError:
        raise Undecodable(f"{host} sent a body with the encoding {encoding[:40]!r}, though only {ACCEPTED}") from None
    try:
        async for chunk in response.aiter_raw():
            for _ in body.feed(chunk):
                await asyncio.sleep(0)
        return body.content(), False
    except Unpacked:
        if limits.cut:
            return body.beginning(), True
        raise TooLarge(host, max_bytes=max_bytes) from None
    except zlib.error as error:
        raise Undecodable(f"the body that {host} sent is damaged: {error}") from None


def _parsed(url: str, *, base: httpx2.URL | None = None) -> httpx2.URL:
    import httpx2

    if len(url) > URL_CHARS_MAX:
        raise InvalidUrl(f"the URL is longer than {URL_CHARS_MAX} characters")
    try:
        parsed = httpx2.URL(url) if base is None else base.join(url)
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise InvalidUrl(f"this is not a URL: {error}") from None
    return parsed.copy_with(fragment=None)


def _port(url: httpx2.URL) -> Any:
    return url.port if url.port is not None else {"http": 80, "https": 443}.get(url.scheme)
