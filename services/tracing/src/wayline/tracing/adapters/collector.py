"""Sends spans on to an OTLP/HTTP collector; when it is slow or away spans are dropped and counted, nothing waits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import structlog
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from wayline.telemetry import metrics
from wayline.tracing.rows import SpanRow

if TYPE_CHECKING:
    import httpx2

log = structlog.get_logger()

QUEUE_MAX = 256
"""Batches that wait to be sent."""
TRIES = 4
PAUSE_S = 0.5
PATH = "/v1/traces"

_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUSES = {"unset": 0, "ok": 1, "error": 2}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Collector:
    """A bounded queue in front of an OTLP/HTTP endpoint."""

    def __init__(self, endpoint: str, *, headers: str = "", timeout_s: float = 10) -> None:
        base = endpoint.rstrip("/")
        self._url = base if base.endswith(PATH) else base + PATH
        self._headers = {"content-type": "application/x-protobuf", **_pairs(headers)}
        self._timeout_s = timeout_s
        self._queue: deque[tuple[bytes, int]] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        self._client: httpx2.AsyncClient | None = None

    async def start(self) -> None:
        import httpx2

        self._client = httpx2.AsyncClient(timeout=self._timeout_s, headers=self._headers)
        self._task = asyncio.create_task(self._run(), name="otlp forwarding")

    async def stop(self, grace_s: float) -> None:
        """Nothing yet: what the other parts finish now is still to be sent."""

    async def close(self, grace_s: float = 5.0) -> None:
        """Send what waits within the grace, and end."""
        if self._task is None or self._client is None:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), grace_s)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._client.aclose()

    def forward(self, body: bytes, spans: int) -> None:
        """Take a batch for sending; never waits."""
        if len(self._queue) >= QUEUE_MAX:
            metrics.spans_dropped.labels("tracing", "forward queue").inc(spans)
            return
        self._queue.append((body, spans))
        self._idle.clear()
        self._wake.set()

    def forward_rows(self, rows: Sequence[SpanRow]) -> None:
        """Take spans that were made from the log."""
        self.forward(to_otlp(rows), len(rows))

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                body, spans = self._queue[0]
                if not await self._sent(body):
                    metrics.spans_dropped.labels("tracing", "forward").inc(spans)
                self._queue.popleft()
            self._idle.set()

    async def _sent(self, body: bytes) -> bool:
        import httpx2

        assert self._client is not None
        why = ""
        for attempt in range(TRIES):
            try:
                status = (await self._client.post(self._url, content=body)).status_code
                if status < 300:
                    return True
                why = f"HTTP {status}"
                if status != 429 and status < 500:
                    break
            except httpx2.HTTPError as error:
                why = f"{type(error).__name__} {error}".strip()
            if attempt < TRIES - 1:
                await asyncio.sleep(PAUSE_S * 2**attempt)
        log.warning("spans were not forwarded", endpoint=self._url, why=why)
        return False


def to_otlp(rows: Sequence[SpanRow]) -> bytes:
    """Rows as an OTLP request."""
    by_service: dict[str, list[OtlpSpan]] = {}
    for row in rows:
        by_service.setdefault(row.service, []).append(_span(row))
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=Resource(attributes=[KeyValue(key="service.name", value=_any(service))]),
                scope_spans=[ScopeSpans(spans=spans)],
            )
            for service, spans in by_service.items()
        ]
    ).SerializeToString()


def _span(row: SpanRow) -> OtlpSpan:
    started = int((row.start - _EPOCH).total_seconds() * 1_000_000) * 1_000
    return OtlpSpan(
        trace_id=bytes.fromhex(row.trace_id),
        span_id=bytes.fromhex(row.span_id),
        parent_span_id=bytes.fromhex(row.parent_span_id or ""),
        name=row.name,
        kind=_KINDS[row.kind],  # pyright: ignore[reportArgumentType] - an enum's number
        start_time_unix_nano=started,
        end_time_unix_nano=started + int((row.duration_ms or 0) * 1e6),
        attributes=[
            KeyValue(key=key, value=_any(value)) for key, value in orjson.loads(row.attributes or "{}").items()
        ],
        links=[
            OtlpSpan.Link(trace_id=bytes.fromhex(link["trace_id"]), span_id=bytes.fromhex(link["span_id"]))
            for link in orjson.loads(row.links or "[]")
        ],
        events=[
            OtlpSpan.Event(
                name=event["name"],
                time_unix_nano=int((datetime.fromisoformat(event["at"]) - _EPOCH).total_seconds() * 1e6) * 1_000,
                attributes=[KeyValue(key=key, value=_any(v)) for key, v in event.get("attributes", {}).items()],
            )
            for event in orjson.loads(row.events or "[]")
        ],
        status=Status(code=_STATUSES.get(row.status, 0)),  # pyright: ignore[reportArgumentType]
    )


def _any(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[_any(item) for item in value]))
    return AnyValue(string_value=str(value))


def _pairs(text: str) -> dict[str, str]:
    """`name=value,name=value` as a dictionary."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
