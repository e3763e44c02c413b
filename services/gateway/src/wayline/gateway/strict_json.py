"""Read a request's JSON strictly, so that every accepted value can be written again."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

from wayline.contracts.strict_json import NotStrictJson, read_json


class StrictRequest(Request):
    """A request whose JSON has no NaN, no half surrogate pair and no deep nesting, which Python's reader accepts."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            return read_json(body)
        except NotStrictJson:
            encoding = self.headers.get("content-encoding", "").strip().lower()
            # Some clients name a character set there, and send plain JSON.
            if encoding in ("", "identity") or body.lstrip().startswith((b"{", b"[")):
                raise
            told = f"it is sent with Content-Encoding {encoding[:40]!r}: send it uncompressed, without that"
            raise NotStrictJson(told) from None


class StrictRoute(APIRoute):
    """A route that reads JSON strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly
