"""A web server for tests: pages by their path, and the ways in which a server misbehaves."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web

CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True)
class Page:
    """What is answered at one path."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "text/html; charset=utf-8"
    hold: asyncio.Event | None = None
    """Send the body but for its last byte, then wait for this."""
    cut: bool = False
    """Break the connection off in the middle of the body."""


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it arrived."""

    method: str
    path: str
    """With its query."""
    headers: Mapping[str, str]
    body: bytes

    @property
    def query(self) -> Mapping[str, str]:
        """Return the parameters behind the question mark."""
        return dict(parse_qsl(urlsplit(self.path).query))


Answer = Callable[[ReceivedRequest], Page]


@dataclass
class Website:
    """Serves pages on a free port of loopback; a path without a page is answered with 404."""

    pages: dict[str, Page | Answer] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    seen: list[ReceivedRequest] = field(default_factory=list)
    sent_bytes: int = 0
    """Of bodies, as far as they were taken."""

    async def __aenter__(self) -> Website:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.tls)
        await site.start()
        self.port: int = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def url(self, path: str = "/", *, host: str = "127.0.0.1") -> str:
        """Return the URL of a page, under any name that leads here."""
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        """Return the path of every request, in order."""
        return [one.path for one in self.seen]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        seen = ReceivedRequest(
            request.method,
            request.path_qs,
            {name.lower(): value for name, value in request.headers.items()},
            await request.read(),
        )
        self.seen.append(seen)
        found = self.pages.get(request.path, Page(f"there is no {request.path}", status=404))
        page = found(seen) if callable(found) else found
        body = page.body.encode() if isinstance(page.body, str) else page.body
        headers = {"Content-Type": page.media_type, **page.headers}
        if not page.hold and not page.cut:
            headers.setdefault("Content-Length", str(len(body)))
        response = web.StreamResponse(status=page.status, headers=headers)
        if page.hold or page.cut:
            response.enable_chunked_encoding()
        await response.prepare(request)
        async for chunk in _chunks(body, page.hold):
            await response.write(chunk)
            self.sent_bytes += len(chunk)
        if page.cut and request.transport is not None:
            request.transport.abort()
        return response


async def _chunks(body: bytes, hold: asyncio.Event | None) -> AsyncIterator[bytes]:
    whole = body[:-1] if hold else body
    for at in range(0, len(whole), CHUNK_BYTES):
        yield whole[at : at + CHUNK_BYTES]
    if hold:
        await hold.wait()
        yield body[-1:]
