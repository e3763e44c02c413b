"""Say with which status a server has refused a request: the MCP library only says that it was an error.

A module of its own, because httpx2 takes a while to import.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from http import HTTPStatus

import httpx2
from mcp_types import INTERNAL_ERROR

READ_MAX_BYTES = 1024 * 1024
"""Of an error that a server explains itself."""
KEY_MISSING = "it needs a login (`wayline mcp add … --oauth`) or its key in `headers`"
KEY_REFUSED = "its key in `headers` is missing or wrong"


class FailedAnswer(httpx2.AsyncByteStream):
    """The body of a failed answer: the server's own JSON-RPC error, else one that names the status."""

    def __init__(self, inner: httpx2.AsyncByteStream, why: str, *, is_json: bool) -> None:
        """Take the server's body, which is read only where it may be an error in JSON."""
        self._inner = inner
        self._why = why
        self._is_json = is_json

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = await self._read() if self._is_json else b""
        if _is_error(body):
            yield body
            return
        # With the code that the library gives such a failure.
        error = {"code": INTERNAL_ERROR, "message": self._why}
        yield json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()

    async def aclose(self) -> None:
        """Close the server's body."""
        await self._inner.aclose()

    async def _read(self) -> bytes:
        body = bytearray()
        async for part in self._inner:
            body += part
            if len(body) > READ_MAX_BYTES:
                return b""
        return bytes(body)


def why_failed(answer: httpx2.Response) -> str:
    """Name the status of an answer, and what to do about it where that is known."""
    try:
        phrase = HTTPStatus(answer.status_code).phrase
    except ValueError:
        phrase = ""
    why = f"the server answered {answer.status_code} {phrase}".rstrip()
    if answer.status_code != HTTPStatus.UNAUTHORIZED:
        return why
    return f"{why}: {KEY_MISSING if 'WWW-Authenticate' in answer.headers else KEY_REFUSED}"


def _is_error(body: bytes) -> bool:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and isinstance(value.get("error"), dict) and value.get("jsonrpc") == "2.0"
