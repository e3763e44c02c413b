"""Which web pages may use `/mcp`, and what browsers are told so that they can."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
PATHS: Final = ("/mcp", "/oauth/token", "/.well-known/oauth-")
METHODS: Final = "GET, POST"
ASKED_HEADERS: Final = "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version"
SHOWN_HEADERS: Final = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After"
PREFLIGHT_KEPT_S: Final = 600


def is_known(origin: str, named: Iterable[str]) -> bool:
    """Return whether pages of an origin may use `/mcp`: it is named, or of this machine."""
    if origin in named:
        return True
    try:
        return urlsplit(origin).hostname in LOCAL_NAMES
    except ValueError:
        return False


class PageAccess:
    """Middleware that answers browsers' questions before a request, and lets pages that may use it read an answer."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PATHS):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None or not is_known(origin, self._origins):
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            told = {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Methods": METHODS,
                "Access-Control-Allow-Headers": ASKED_HEADERS,
                "Access-Control-Max-Age": str(PREFLIGHT_KEPT_S),
                "Vary": "Origin",
            }
            await Response(status_code=204, headers=told)(scope, receive, send)
            return

        async def readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = MutableHeaders(scope=message)
                told["Access-Control-Allow-Origin"] = origin
                told["Access-Control-Expose-Headers"] = SHOWN_HEADERS
                told.add_vary_header("Origin")
            await send(message)

        await self._app(scope, receive, readable)
