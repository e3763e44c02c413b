"""Middleware: what every request passes before FastAPI, and every answer after it."""

from __future__ import annotations

import re
import time
from typing import Any

import structlog
from opentelemetry import propagate, trace
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wayline.gateway.keys import IDENTITY, RATE_LIMITS, Caller
from wayline.gateway.openai.error_shape import PREFIX
from wayline.gateway.problem_answers import problem_response, status_problem
from wayline.telemetry import headers_of, metrics

log = structlog.get_logger()

PROBED = ("/health/", "/metrics")
"""Probes ask every few seconds: spans and log lines of these would only bury the others."""
DRAIN_MAX_BYTES = 128 * 1024 * 1024
"""Read and thrown away of a body that was refused: a client still sending would not see the answer otherwise."""

_SLASHES = re.compile("/{2,}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_W3C = frozenset({b"traceparent", b"tracestate", b"baggage"})


class RequestMiddleware:
    """Middleware that keeps a caller's trace out of ours, answers 413 with a problem, counts and logs requests."""

    def __init__(self, app: ASGIApp, *, access_log: bool = False) -> None:
        self._app = app
        self._access_log = access_log
        # What FastAPI's own spans would read a parent from: OTEL_PROPAGATORS may name other headers than W3C's.
        self._foreign = _W3C | {field.lower().encode() for field in propagate.get_global_textmap().fields}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"].startswith(PREFIX):
            # A base URL that ends with a slash doubles it in many clients.
            scope["path"] = _SLASHES.sub("/", scope["path"]).rstrip("/")
        answer = _Answer(scope, receive, send)
        started = time.perf_counter()
        try:
            await self._app(_without_foreign_trace(scope, self._foreign), receive, answer.send)
        finally:
            route = answer.route()
            # A client may invent methods; a label may not grow with what clients invent.
            method = scope["method"] if scope["method"] in _METHODS else "other"
            metrics.http_requests.labels(method, route, str(answer.status)).inc()
            seconds = time.perf_counter() - started
            metrics.http_seconds.labels(method, route).observe(seconds)
            if self._access_log and not scope["path"].startswith(PROBED):
                _log_request(scope, method, answer, seconds)


def _for_pages(message: Message) -> dict[str, str]:
    """Return the headers of an answer without which a browser shows it to no page."""
    told = {bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in message["headers"]}
    return {name: value for name, value in told.items() if name.lower().startswith("access-control-")}


def _log_request(scope: Scope, method: str, answer: _Answer, seconds: float) -> None:
    """Log a request by its route: no path, parameter, header or body of it, which may hold what nobody should read."""
    caller: Caller | None = scope.get("state", {}).get(IDENTITY)
    log.info(
        "request",
        method=method,
        route=answer.route(),
        # A client that left before its answer began has none.
        status=answer.status or None,
        duration_ms=round(seconds * 1_000, 1),
        tenant=caller.tenant if caller else None,
        key=caller.key_id or None if caller else None,
        trace_id=answer.trace_id,
    )


def _without_foreign_trace(scope: Scope, foreign: frozenset[bytes]) -> Scope:
    """Take a caller's trace out of a request, and keep it in `caller` for a link.

    Trace ids are computable: a caller that could name our parent could write into another tenant's trace.
    """
    kept = [(name, value) for name, value in scope["headers"] if name not in foreign]
    caller: dict[str, str] = {}
    if len(kept) < len(scope["headers"]):
        caller = headers_of(trace.get_current_span(propagate.extract(Headers(scope=scope))).get_span_context())
        scope["headers"] = kept
    scope.setdefault("state", {})["caller"] = caller or None
    return scope


class _Answer:
    """One answer on its way out."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._replaced = False
        self.status = 0
        self.trace_id: str | None = None

    def route(self) -> str:
        """Return the route's template: never the path itself, which would be a label per job."""
        route = self._scope.get("route")
        return getattr(route, "path", None) or "none"

    async def send(self, message: Message) -> None:
        if self._replaced:
            return
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            span = trace.get_current_span().get_span_context()
            self.trace_id = f"{span.trace_id:032x}" if span.is_valid else None
            if self.status == 413:
                self._replaced = True
                await self._too_large(_for_pages(message))
                return
            if limits := self._scope.get("state", {}).get(RATE_LIMITS):
                told = MutableHeaders(scope=message)
                for name, value in limits.items():
                    told.append(name, value)
        await self._send(message)

    async def _too_large(self, headers: dict[str, str]) -> None:
        await self._drain()
        problem = status_problem(413, "the request body is larger than this address takes")
        answer = problem_response(problem, instance=self._scope["path"], headers=headers)
        await answer(self._scope, self._receive, self._send)

    async def _drain(self) -> None:
        headers = Headers(scope=self._scope)
        if headers.get("expect", "").lower() == "100-continue":
            return
        left = DRAIN_MAX_BYTES
        while left > 0:
            message: dict[str, Any] = dict(await self._receive())
            if message["type"] == "http.disconnect" or not message.get("more_body", False):
                return
            left -= len(message.get("body", b""))
