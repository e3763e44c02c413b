"""HTTP as the providers use it: keys, headers, errors."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from aiohttp import web

from wayline.simulator.refusals import Refusal, as_body
from wayline.simulator.scripts.script import Wire


async def json_of(request: web.Request) -> dict[str, Any]:
    """Read the body, which has to be an object."""
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise Refusal(f"The request body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refusal("The request body must be an object.")
    return body


def _key(request: web.Request) -> str:
    return request.headers.get("x-api-key") or request.headers.get("Authorization", "").removeprefix("Bearer ").strip()


def owner(request: web.Request) -> str:
    """Return an id of the key's owner, without the key."""
    return hashlib.sha256(_key(request).encode()).hexdigest()[:16]


def verified(request: web.Request) -> bool:
    """Return whether the key's organisation is verified: every one whose key does not say otherwise."""
    return not _key(request).startswith("unverified")


def check_key(request: web.Request, wire: Wire) -> None:
    """Refuse a missing key, and one that calls itself invalid; accept any other."""
    key = _key(request)
    if key and not key.startswith("invalid"):
        return
    if wire == "anthropic":
        raise Refusal("invalid x-api-key", status=401, kind="authentication_error")
    raise Refusal("Incorrect API key provided.", status=401, code="invalid_api_key")


def headers(wire: Wire, number: int, *, streamed: bool) -> dict[str, str]:
    kind = "text/event-stream; charset=utf-8" if streamed else "application/json"
    name = "request-id" if wire == "anthropic" else "x-request-id"
    return {"Content-Type": kind, name: f"req_{number:08d}"}


def refused(refusal: Refusal, wire: Wire, number: int) -> web.Response:
    """Return the error as a response."""
    response_headers = headers(wire, number, streamed=False) | refusal.headers
    body = orjson.dumps(as_body(refusal, wire, f"req_{number:08d}"))
    return web.Response(body=body, status=refusal.status, headers=response_headers)
