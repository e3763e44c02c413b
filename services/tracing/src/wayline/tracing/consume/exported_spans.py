"""Leaf spans: what services export themselves, read from OTLP batches within limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from nats.aio.msg import Msg
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from wayline.contracts.ids import is_tenant
from wayline.contracts.money import Usage
from wayline.telemetry import metrics, names
from wayline.tracing.consume.trace_tenants import TraceTenants
from wayline.tracing.errors import NotSpans
from wayline.tracing.rows import NOBODY, Rows, SpanRow, as_json, clean, model_json
from wayline.tracing.tables import Tables

ATTRIBUTES_MAX = 64
KEY_MAX = 128
TEXT_MAX = 2_048
LIST_MAX = 32
LINKS_MAX = 16
NAME_MAX = 256

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KINDS = ("internal", "internal", "server", "client", "producer", "consumer")
STATUSES = ("unset", "ok", "error")
STATUS_TEXT = "otel.status_description"
ANCHOR = f"{names.ANCHOR}="


Forward = Callable[[bytes, int], None]
"""Takes a batch as it came, and how many spans it has."""


class Export(NamedTuple):
    """One service's batch: its spans, and the bytes as they came."""

    rows: list[SpanRow]
    body: bytes


class ExportedSpans:
    """Stores exported spans under the tenant whose job they belong to."""

    def __init__(self, tables: Tables, trace_tenants: TraceTenants, *, forward: Forward | None = None) -> None:
        self._tables = tables
        self._trace_tenants = trace_tenants
        self._forward = forward

    async def read(self, message: Msg) -> Export:
        """Read a batch from its wire form. Raises NotSpans."""
        return Export(read_spans(message.data), message.data)

    async def store(self, exports: Sequence[Export]) -> None:
        """Store batches; a span that came before is the same row."""
        found = {row[:3]: row for export in exports for row in export.rows}
        tenants = await self._trace_tenants.find(row.trace_id for row in found.values())
        rows = [
            # The job says whose a span is; what the span itself says counts only where there is no job.
            row._replace(tenant=tenants[row.trace_id]) if row.trace_id in tenants else row
            for row in found.values()
        ]
        await self._tables.write(Rows(spans=rows))
        if self._forward:
            for export in exports:
                self._forward(export.body, len(export.rows))


def read_spans(body: bytes) -> list[SpanRow]:
    """Read the spans of an OTLP request; keep only the beginning of parts that are too large."""
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError:
        raise NotSpans from None
    rows: list[SpanRow] = []
    for resource in request.resource_spans:
        service, tenant = _whose(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                if len(span.trace_id) == 16 and len(span.span_id) == 8:
                    rows.append(_row(span, service, tenant))
                else:
                    metrics.spans_dropped.labels("tracing", "invalid").inc()
    return rows


def _whose(attributes: Iterable[KeyValue]) -> tuple[str, str]:
    """Return the service and the tenant that a resource names."""
    named = {attribute.key: attribute.value.string_value for attribute in attributes}
    # `service.name` may name the whole deployment.
    service = named.get(names.SERVICE) or named.get("service.name") or "unknown"
    tenant = named.get(names.TENANT, NOBODY)
    # Modules are named with an underscore, services with a hyphen.
    return _text(service, NAME_MAX).replace("_", "-"), tenant if is_tenant(tenant) else NOBODY


def _row(span: OtlpSpan, service: str, tenant: str) -> SpanRow:
    attributes = {_text(a.key, KEY_MAX): _value(a.value) for a in span.attributes[:ATTRIBUTES_MAX]}
    status = span.status
    if status.message:
        attributes[STATUS_TEXT] = _text(status.message, TEXT_MAX)
    claimed = attributes.get(names.TENANT)
    took_ns = max(0, span.end_time_unix_nano - span.start_time_unix_nano)
    return SpanRow(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        start=EPOCH + timedelta(microseconds=span.start_time_unix_nano // 1_000),
        tenant=claimed if isinstance(claimed, str) and is_tenant(claimed) else tenant,
        parent_span_id=span.parent_span_id.hex() or None,
        anchor=_anchor(span.trace_state) if span.trace_state else None,
        service=service,
        name=_text(span.name, NAME_MAX),
        kind=KINDS[span.kind] if 0 <= span.kind < len(KINDS) else "internal",
        duration_ms=took_ns / 1e6,
        status=STATUSES[status.code] if 0 <= status.code < len(STATUSES) else "unset",
        attributes=as_json(attributes),
        links=_links(span) if span.links else None,
        events=None,
        usage=_usage(attributes),
        cost_usd=_cost(attributes.get(names.COST)),
        seq=0,
    )


def _anchor(trace_state: str) -> str | None:
    for member in trace_state.split(","):
        stripped = member.strip()
        if stripped.startswith(ANCHOR):
            return stripped[len(ANCHOR) :][:16]
    return None


def _links(span: OtlpSpan) -> str:
    return as_json([{"trace_id": x.trace_id.hex(), "span_id": x.span_id.hex()} for x in span.links[:LINKS_MAX]])


def _usage(attributes: dict[str, Any]) -> str | None:
    tokens = {
        name: attributes[key]
        for name, key in (("input", names.GEN_AI_INPUT_TOKENS), ("output", names.GEN_AI_OUTPUT_TOKENS))
        if isinstance(attributes.get(key), int) and attributes[key] >= 0
    }
    return model_json(Usage(**tokens)) if tokens else None


def _cost(value: Any) -> Decimal | None:
    try:
        cost = Decimal(str(value)) if value is not None else None
    except InvalidOperation:
        return None
    return cost if cost is not None and cost.is_finite() else None


def _value(value: AnyValue, *, nested: bool = False) -> Any:
    # Most are text, and to ask what a value is costs as much as to read it.
    if value.string_value:
        return _text(value.string_value, TEXT_MAX)
    kind = value.WhichOneof("value")
    if kind == "array_value" and not nested:
        return [_value(item, nested=True) for item in value.array_value.values[:LIST_MAX]]
    if kind in ("int_value", "bool_value", "double_value", "string_value"):
        return getattr(value, kind)
    return None if kind is None else _text(str(value), TEXT_MAX)


def _text(text: str, limit: int) -> str:
    return clean(text if len(text) <= limit else f"{text[:limit]}…")
