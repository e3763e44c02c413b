"""Middleware that refuses what another site has a browser send, and tells browsers what a page may do."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
FOREIGN_SITES: Final = frozenset({"cross-site", "same-site"})
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Answers requests for this console's own hosts; forms come from its own pages."""

    def __init__(self, app: ASGIApp, *, public_url: str | None) -> None:
        self._app = app
        public = urlsplit(public_url).hostname if public_url else None
        self._hosts = LOCAL_NAMES | ({public} if public else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope["method"], headers)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                add_headers(MutableHeaders(scope=message))
            await send(message)

        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, method: str, headers: Headers) -> PlainTextResponse | None:
        """Return why a request is refused.

        Any page of the web can have its own name resolve to this machine: then its requests are of one origin with us,
        and only the name that they ask for gives them away.
        """
        if _host(headers.get("host", "")) not in self._hosts:
            return PlainTextResponse(
                "This is not the console's address. Open it as localhost, or set WAYLINE_CONSOLE_PUBLIC_URL.\n", 421
            )
        if method not in SAFE_METHODS and not self._is_own(headers):
            return PlainTextResponse("A form of another site cannot change anything here.\n", 403)
        if _is_taken(headers):
            return PlainTextResponse("A page of another site cannot read anything here.\n", 403)
        return None

    @staticmethod
    def _is_own(headers: Headers) -> bool:
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:
            return site == "same-origin"
        return origin is not None and origin.partition("://")[2] == headers.get("host")


def _is_taken(headers: Headers) -> bool:
    """Return whether a page of another site fetches something, as a picture, a script, a frame or by itself.

    Of a link that a person follows, a browser says that it navigates to a document.
    """
    if headers.get("sec-fetch-site") not in FOREIGN_SITES:
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def add_headers(headers: MutableHeaders) -> None:
    """Tell a browser what a page may do, and not to keep it where nothing else is said."""
    for name, value in {**HEADERS, "Cache-Control": "no-store"}.items():
        headers.setdefault(name, value)


def _host(value: str) -> str | None:
    try:
        return urlsplit(f"//{value}").hostname
    except ValueError:
        return None
