"""Which web pages may use this gateway, and what browsers are told so that they can: never with cookies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
MCP_PATHS: Final = ("/mcp", "/oauth/token", "/.well-known/oauth-")
API_PATHS: Final = ("/v1/", "/openai/", "/openapi.json")
COOKIE_PATHS: Final = ("/v1/mcp/oauth/",)
"""Pages of ours, whose cookie says which browser it is: no other page reads them."""
ASKED_HEADERS: Final = "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version"
PREFLIGHT_KEPT_S: Final = 600
ASKED_HEADERS_MAX: Final = 50
"""Of one question; OpenAI's client sends a dozen of its own."""
_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True)
class _PageRules:
    """What browsers are told of some addresses."""

    methods: str
    shown_headers: str
    takes_any_header: bool


_MCP: Final = _PageRules("GET, POST", "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After", False)
_API: Final = _PageRules(
    "GET, POST, PUT, PATCH, DELETE",
    "ETag, Location, Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, X-Wayline-Job, X-Wayline-Trace, "
    "X-Wayline-Cost",
    True,
)


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

    def __init__(self, app: ASGIApp, mcp_origins: tuple[str, ...], *, api_origins: tuple[str, ...] = ()) -> None:
        self._app = app
        self._mcp_origins = mcp_origins
        self._api_origins = frozenset(api_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = headers.get("origin")
        rules = None if origin is None else self._rules(scope["path"], origin)
        if origin is None or rules is None:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            told = {
                "Access-Control-Allow-Origin": origin,
                "Access-Control-Allow-Methods": rules.methods,
                "Access-Control-Allow-Headers": _allowed_headers(rules, headers),
                "Access-Control-Max-Age": str(PREFLIGHT_KEPT_S),
                "Vary": "Origin, Access-Control-Request-Headers" if rules.takes_any_header else "Origin",
            }
            await Response(status_code=204, headers=told)(scope, receive, send)
            return

        async def readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = MutableHeaders(scope=message)
                told["Access-Control-Allow-Origin"] = origin
                told["Access-Control-Expose-Headers"] = rules.shown_headers
                told.add_vary_header("Origin")
            await send(message)

        await self._app(scope, receive, readable)

    def _rules(self, path: str, origin: str) -> _PageRules | None:
        """Return what a page of an origin may use at a path; None: nothing that it does not know by itself."""
        if path.startswith(MCP_PATHS):
            return _MCP if is_known(origin, self._mcp_origins) else None
        if path.startswith(API_PATHS) and not path.startswith(COOKIE_PATHS) and origin in self._api_origins:
            return _API
        return None


def _allowed_headers(rules: _PageRules, headers: Headers) -> str:
    """Return the headers that a page may send: any that it asks for where they give it no more than its key does."""
    if not rules.takes_any_header:
        return ASKED_HEADERS
    asked = [name.strip() for name in headers.get("access-control-request-headers", "").split(",", ASKED_HEADERS_MAX)]
    known = [name for name in asked if _NAME.fullmatch(name) and name.lower() != "cookie"]
    return ", ".join(known) or "Authorization"
