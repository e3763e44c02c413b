"""Finished spans as an OTLP request in protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1 import trace_pb2 as otlp
from opentelemetry.trace import SpanContext

from wayline.telemetry.recording import Span

SCOPE = "wayline"
PLAIN = (str, int, float)
ATTRIBUTES_KEPT = 4_096
"""Encoded attributes that are kept at hand: most are the same on all spans of a kind."""
KNOWN_REMOTE, IS_REMOTE = 0x100, 0x200
"""Bits of OTLP's `Span.flags`: whether the parent is in another process is known, and it is."""


def encode_spans(spans: Iterable[Span]) -> bytes:
    """An `ExportTraceServiceRequest`, one resource a service; attributes that OTLP has no type for are left out."""
    request = ExportTraceServiceRequest()
    scopes: dict[str, otlp.ScopeSpans] = {}
    for span in spans:
        scope = scopes.get(span.service)
        if scope is None:
            resource = request.resource_spans.add()
            _add(resource.resource.attributes, {"service.name": span.service})
            scope = scopes[span.service] = resource.scope_spans.add()
            scope.scope.name = SCOPE
        _encode(scope.spans, span)
    return request.SerializeToString()


def _encode(into: Any, span: Span) -> None:
    context = span.context
    out = into.add(
        trace_id=_trace_id(context),
        span_id=_span_id(context),
        name=span.name,
        kind=span.kind.value + 1,
        start_time_unix_nano=span.start_time,
        end_time_unix_nano=span.end_time or 0,
        flags=_flags(span.parent),
    )
    if span.parent is not None:
        out.parent_span_id = _span_id(span.parent)
    if context.trace_state:
        out.trace_state = context.trace_state.to_header()
    said = span.attributes.items()
    out.MergeFromString(
        b"".join([(_kept if isinstance(value, PLAIN) else _encoded)(key, value) for key, value in said])
    )
    for name, at, attributes in span.events:
        event = out.events.add(name=name, time_unix_nano=at)
        _add(event.attributes, attributes or {})
    for link in span.links:
        there = link.context
        said = out.links.add(trace_id=_trace_id(there), span_id=_span_id(there), flags=_flags(there))
        _add(said.attributes, link.attributes or {})
    out.status.code = span.status.status_code.value
    if span.status.description:
        out.status.message = span.status.description


def _encoded(key: str, value: Any) -> bytes:
    """A span with one attribute and nothing else: merged into another span, it adds the attribute."""
    alone = otlp.Span()
    _add(alone.attributes, {key: value})
    return alone.SerializeToString()


# By type as well: a flag, a number and a fraction may be equal.
@lru_cache(ATTRIBUTES_KEPT, typed=True)
def _kept(key: str, value: str | float) -> bytes:
    return _encoded(key, value)


def _flags(context: SpanContext | None) -> int:
    return KNOWN_REMOTE | (IS_REMOTE if context is not None and context.is_remote else 0)


def _trace_id(context: SpanContext) -> bytes:
    return context.trace_id.to_bytes(16, "big")


def _span_id(context: SpanContext) -> bytes:
    return context.span_id.to_bytes(8, "big")


def _add(into: Any, attributes: Mapping[str, Any]) -> None:
    for key, value in attributes.items():
        if isinstance(value, str):
            into.add(key=key).value.string_value = value
        elif isinstance(value, bool):
            into.add(key=key).value.bool_value = value
        elif isinstance(value, int):
            into.add(key=key).value.int_value = value
        elif isinstance(value, float):
            into.add(key=key).value.double_value = value
        elif isinstance(value, (list, tuple)):
            values = into.add(key=key).value.array_value.values
            values.extend(AnyValue(string_value=str(item)) for item in value)
