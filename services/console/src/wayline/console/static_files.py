"""The console's own files: compressed, and kept by browsers for ever, as their address holds their hash."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from wayline.console.render.environment import static_address

TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
KEPT: Final = "public, max-age=31536000, immutable"


@cache
def _content(name: str) -> tuple[bytes, bytes]:
    """Return a file's bytes, plain and compressed."""
    plain = files("wayline.console").joinpath("static", *name.split("/")).read_bytes()
    return plain, gzip.compress(plain, 9, mtime=0)


@cache
def _names() -> frozenset[str]:
    """Return the files that there are: nothing else is ever opened."""
    root = files("wayline.console").joinpath("static")
    top = {entry.name for entry in root.iterdir() if entry.is_file()}
    vendored = {f"vendor/{entry.name}" for entry in root.joinpath("vendor").iterdir() if entry.is_file()}
    return frozenset(top | vendored)


class StaticFiles:
    """Serves `/static/<hash>/<name>`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response:
        _, _, name = scope["path"].removeprefix(scope.get("root_path", "")).lstrip("/").partition("/")
        ending = name[name.rfind(".") :]
        if name not in _names() or ending not in TYPES or not static_address(name).endswith(scope["path"]):
            return PlainTextResponse("There is no such file.\n", 404)
        plain, packed = _content(name)
        takes_gzip = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        headers = {"Cache-Control": KEPT, "Vary": "Accept-Encoding"} | (
            {"Content-Encoding": "gzip"} if takes_gzip else {}
        )
        return Response(packed if takes_gzip else plain, media_type=TYPES[ending], headers=headers)
