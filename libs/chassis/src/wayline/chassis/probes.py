"""Liveness, readiness and metrics over HTTP for a service that has no HTTP of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import orjson
import uvicorn
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

from wayline.chassis.bounded_http import BoundedHttp, Places

PROBES_MAX = 256
"""Connections to the port of probes."""
Ready = Callable[[], Awaitable[dict[str, str]]]
"""Returns what a service needs by name: `ok`, or what is wrong with it."""

DATE_FRESH_S = 1.0
"""How old the `Date` of an answer may be."""


def probes(ready: Ready) -> Callable[..., Awaitable[None]]:
    """Return an ASGI application with /health/live, /health/ready and /metrics."""

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
        status, kind, body = await _answer(scope["path"], ready, accept.decode("latin-1"))
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": body})

    return app


async def _answer(path: str, ready: Ready, accept: str) -> tuple[int, bytes, bytes]:
    if path == "/health/live":
        return 200, b"application/json", b'{"status":"ok"}'
    if path == "/health/ready":
        needs = await ready()
        well = all(state == "ok" for state in needs.values())
        body = orjson.dumps({"status": "ok" if well else "unavailable", "needs": needs})
        return 200 if well else 503, b"application/json", body
    if path == "/metrics":
        # Prometheus asks for OpenMetrics, which has the traces that measurements came from.
        encode, kind = choose_encoder(accept)
        return 200, kind.encode(), encode(REGISTRY)
    return 404, b"application/json", b'{"error":"not found: use /health/live, /health/ready or /metrics"}'


class ProbeServer(uvicorn.Server):
    """A uvicorn server inside a service: the service owns the signals, and is heard at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        self._leaving = asyncio.Event()
        super().__init__(config)

    @property
    def should_exit(self) -> bool:
        return self._leaving.is_set()

    @should_exit.setter
    def should_exit(self, leaving: bool) -> None:
        if leaving:
            self._leaving.set()
        else:
            self._leaving.clear()

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn's own looks for it ten times a second."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(DATE_FRESH_S):
                    await self._leaving.wait()

    def capture_signals(self) -> Any:
        return nullcontext()


def server(app: Any, *, host: str, port: int, places: Places | None = None) -> ProbeServer:
    """Return a server for `app` that logs warnings only and leaves signals alone."""
    places = places or Places.within_files(most=PROBES_MAX)
    http: Any = partial(BoundedHttp, places=places)
    quiet: Any = {"log_level": "warning", "access_log": False, "lifespan": "off"}
    return ProbeServer(uvicorn.Config(app, host=host, port=port, http=http, timeout_keep_alive=places.idle_s, **quiet))
