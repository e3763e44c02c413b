"""Several JSON-RPC messages in one request, as protocol 2025-03-26 allows and no later one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson
from fastapi import Request
from fastapi.responses import JSONResponse, Response
from mcp_types import INVALID_REQUEST
from starlette.types import Message

VERSION: Final = "2025-03-26"
BATCH_MAX: Final = 20

Answer = Callable[[bytes, Any], Awaitable[Response]]


def is_allowed(version: str | None) -> bool:
    """Return whether a client that speaks this version may send several messages at once; None: it does not say."""
    return version in (None, VERSION)


async def answer_batch(request: Request, messages: list[Any], answer: Answer) -> Response:
    """Answer each message in turn, and return what answers the requests among them as one list."""
    if not 0 < len(messages) <= BATCH_MAX:
        return _invalid(f"a batch has 1 to {BATCH_MAX} messages")
    if any(isinstance(message, dict) and message.get("method") == "initialize" for message in messages):
        return _invalid("initialize is sent alone")
    found: list[Any] = []
    for message in messages:
        found += await _answers(request, await answer(orjson.dumps(message), message))
    return JSONResponse(found) if found else Response(status_code=202)


async def _answers(request: Request, response: Response) -> list[Any]:
    """Return the JSON-RPC responses in an answer; what else it tells is for a client with a stream."""
    kind, chunks = "", list[bytes]()

    async def take(message: Message) -> None:
        nonlocal kind
        if message["type"] == "http.response.start":
            kind = dict(message["headers"]).get(b"content-type", b"").decode("latin-1")
        else:
            chunks.append(message.get("body", b""))

    await response(dict(request.scope), request.receive, take)
    body = b"".join(chunks)
    if not kind.startswith("text/event-stream"):
        # A notification is answered with nothing.
        told = [orjson.loads(body)] if body else []
    else:
        lines = body.decode("utf-8", "replace").splitlines()
        told = [orjson.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip()]
    return [one for one in told if isinstance(one, dict) and ("result" in one or "error" in one)]


def _invalid(why: str) -> Response:
    problem = {"code": INVALID_REQUEST, "message": why}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": problem}, status_code=400)
