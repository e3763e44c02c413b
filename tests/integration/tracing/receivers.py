"""Collectors on a socket, over HTTP and over gRPC: they keep what they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Received:
    """What came: requests, their headers, and when it is asked to, no answer."""

    endpoint: str = ""
    path: str = "/v1/traces"
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answering.set()

    async def take(self, request: ExportTraceServiceRequest, headers: Mapping[str, str]) -> None:
        self.asked.set()
        await self.answering.wait()
        self.requests.append(request)
        self.headers.append({name.lower(): value for name, value in headers.items()})

    def spans(self) -> dict[str, tuple[Resource, Span]]:
        """Return spans by id, each with its resource."""
        return {
            span.span_id.hex(): (resource_spans.resource, span)
            for request in self.requests
            for resource_spans in request.resource_spans
            for scope_spans in resource_spans.scope_spans
            for span in scope_spans.spans
        }


@asynccontextmanager
async def over_http(*, path: str = "/v1/traces") -> AsyncIterator[Received]:
    """Run an OTLP/HTTP receiver."""
    received = Received(path=path)

    async def collect(request: web.Request) -> web.Response:
        body = await request.read()  # aiohttp has inflated it where it was compressed
        await received.take(ExportTraceServiceRequest.FromString(body), dict(request.headers))
        return web.Response(content_type="application/x-protobuf")

    app = web.Application()
    app.router.add_post(path, collect)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    received.endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield received
    finally:
        received.answering.set()
        await runner.cleanup()


class _Servicer(TraceServiceServicer):
    def __init__(self, received: Received) -> None:
        self._received = received

    async def Export(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request: ExportTraceServiceRequest, context: grpc.aio.ServicerContext
    ) -> ExportTraceServiceResponse:
        await self._received.take(request, {str(key): str(value) for key, value in context.invocation_metadata() or ()})
        return ExportTraceServiceResponse()


@asynccontextmanager
async def over_grpc() -> AsyncIterator[Received]:
    """Run an OTLP/gRPC receiver."""
    received = Received()
    server = grpc.aio.server()
    add_TraceServiceServicer_to_server(_Servicer(received), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    received.endpoint = f"http://127.0.0.1:{port}"
    try:
        yield received
    finally:
        received.answering.set()
        await server.stop(None)
