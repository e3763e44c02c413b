"""Spans as the OpenTelemetry SDK's exporters take them, from rows made of the log and from OTLP batches of services."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

import orjson
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from opentelemetry.proto.trace.v1.trace_pb2 import SpanFlags
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from opentelemetry.sdk.util import BoundedList
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from wayline.telemetry import names
from wayline.tracing.adapters.dialects import Dialect, add_dialects
from wayline.tracing.rows import SpanRow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
SCOPE = InstrumentationScope("wayline")
SERVICES_CACHED_MAX = 32
KINDS = {kind.name.lower(): kind for kind in SpanKind}
STATUSES = {code.name.lower(): Status(code) for code in StatusCode}
OTLP_KINDS = {
    OtlpSpan.SPAN_KIND_INTERNAL: SpanKind.INTERNAL,
    OtlpSpan.SPAN_KIND_SERVER: SpanKind.SERVER,
    OtlpSpan.SPAN_KIND_CLIENT: SpanKind.CLIENT,
    OtlpSpan.SPAN_KIND_PRODUCER: SpanKind.PRODUCER,
    OtlpSpan.SPAN_KIND_CONSUMER: SpanKind.CONSUMER,
}


def from_rows(
    rows: Iterable[SpanRow], sampler: Sampler = ALWAYS_ON, dialects: tuple[Dialect, ...] = ()
) -> list[ReadableSpan]:
    """Turn closed spans that were made from the log into the SDK's, those of jobs that the sampler takes."""
    return [span for row in rows if _is_sampled(span := _from_row(row, dialects), sampler)]


def from_otlp(body: bytes) -> list[ReadableSpan]:
    """Turn a service's OTLP batch into the SDK's spans, whole; a span without valid ids is left out."""
    spans: list[ReadableSpan] = []
    for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
        resource = Resource(_attributes(resource_spans.resource.attributes), resource_spans.schema_url)
        for scope_spans in resource_spans.scope_spans:
            known = scope_spans.scope
            scope = InstrumentationScope(
                known.name, known.version, scope_spans.schema_url, _attributes(known.attributes)
            )
            for span in scope_spans.spans:
                if len(span.trace_id) == 16 and len(span.span_id) == 8:
                    spans.append(_from_otlp(span, resource, scope))
    return spans


def _is_sampled(span: ReadableSpan, sampler: Sampler) -> bool:
    """Ask as for the first span of its trace: so do services about the first of theirs under a span from the log."""
    context = cast("SpanContext", span.context)
    asked = sampler.should_sample(Context(), context.trace_id, span.name, span.kind, span.attributes)
    return asked.decision.is_sampled()


@lru_cache(SERVICES_CACHED_MAX)
def _resource(service: str) -> Resource:
    """Return the resource of spans made here, with what OTEL_RESOURCE_ATTRIBUTES adds."""
    return Resource.create({SERVICE_NAME: service, names.SERVICE: service})


def _from_row(row: SpanRow, dialects: tuple[Dialect, ...]) -> ReadableSpan:
    trace_id = int(row.trace_id, 16)
    started = _nanoseconds(row.start)
    return ReadableSpan(
        name=row.name,
        context=SpanContext(trace_id, int(row.span_id, 16), False, SAMPLED),
        parent=SpanContext(trace_id, int(row.parent_span_id, 16), False, SAMPLED) if row.parent_span_id else None,
        resource=_resource(row.service),
        attributes=add_dialects(orjson.loads(row.attributes or "{}"), dialects, cost_usd=row.cost_usd),
        events=[
            Event(event["name"], event.get("attributes"), _nanoseconds(datetime.fromisoformat(event["at"])))
            for event in orjson.loads(row.events or "[]")
        ],
        links=[
            Link(SpanContext(int(link["trace_id"], 16), int(link["span_id"], 16), True))
            for link in orjson.loads(row.links or "[]")
        ],
        kind=KINDS[row.kind],
        status=STATUSES.get(row.status, STATUSES["unset"]),
        start_time=started,
        end_time=started + int((row.duration_ms or 0) * 1e6),
        instrumentation_scope=SCOPE,
    )


def _nanoseconds(at: datetime) -> int:
    # In whole numbers: a fraction of seconds since 1970 cannot hold microseconds exactly.
    since = at - EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000


def _from_otlp(span: OtlpSpan, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    events = [
        Event(event.name, _attributes(event.attributes, event.dropped_attributes_count), event.time_unix_nano)
        for event in span.events
    ]
    links = [
        Link(
            _context(link.trace_id, link.span_id, link.flags, link.trace_state),
            _attributes(link.attributes, link.dropped_attributes_count),
        )
        for link in span.links
    ]
    return ReadableSpan(
        name=span.name,
        # Whether its parent is remote stands in a span's flags, not whether it is itself.
        context=_context(span.trace_id, span.span_id, 0, span.trace_state),
        parent=_context(span.trace_id, span.parent_span_id, span.flags) if span.parent_span_id else None,
        resource=resource,
        attributes=_attributes(span.attributes, span.dropped_attributes_count),
        events=_bounded(events, span.dropped_events_count),
        links=_bounded(links, span.dropped_links_count),
        kind=OTLP_KINDS.get(span.kind, SpanKind.INTERNAL),
        status=_status(span),
        start_time=span.start_time_unix_nano,
        end_time=span.end_time_unix_nano,
        instrumentation_scope=scope,
    )


def _context(trace_id: bytes, span_id: bytes, flags: int, trace_state: str = "") -> SpanContext:
    return SpanContext(
        int.from_bytes(trace_id, "big"),
        int.from_bytes(span_id, "big"),
        bool(flags & SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK),
        SAMPLED,
        TraceState.from_header([trace_state]) if trace_state else None,
    )


def _status(span: OtlpSpan) -> Status:
    code = StatusCode(span.status.code) if span.status.code in (1, 2) else StatusCode.UNSET
    return Status(code, span.status.message or None) if code is StatusCode.ERROR else Status(code)


def _attributes(attributes: Iterable[KeyValue], dropped: int = 0) -> BoundedAttributes:
    bounded = BoundedAttributes(attributes={attribute.key: _value(attribute.value) for attribute in attributes})
    bounded.dropped += dropped
    return bounded


def _bounded(values: Sequence[Any], dropped: int) -> Sequence[Any]:
    if not dropped:
        return values
    bounded = BoundedList.from_seq(None, values)
    bounded.dropped = dropped
    return bounded


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _value(item.value) for item in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)
