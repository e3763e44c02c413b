"""HEAD: answered as GET is, without the body."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

OF_ONE_BROWSER: Final = ("/v1/mcp/oauth/start", "/v1/mcp/oauth/callback")
"""Steps of a login, of which each GET counts: one sent ahead by a link checker would end it."""


class HeadRequests:
    """Middleware that answers HEAD, which probes and link checkers send, wherever there is a GET that does nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"] in OF_ONE_BROWSER:
            await self._app(scope, receive, send)
            return
        answered = False

        async def head_only(message: Message) -> None:
            nonlocal answered
            if answered:
                # A stream ends by itself: the server tells it that its client has left.
                return
            if message["type"] == "http.response.body":
                answered = True
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        # A copy: the server leaves the body out by the method of its own.
        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, head_only)
        finally:
            # By which requests are counted.
            scope["route"] = as_get.get("route")
