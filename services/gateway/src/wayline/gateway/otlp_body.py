"""Reads what OpenTelemetry's exporters send, within limits, and cuts it into parts that the bus carries. Pure."""

from __future__ import annotations

import zlib
from base64 import b64encode
from binascii import Error as NotHex
from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToJson, ParseDict, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from wayline.contracts.errors import Reject
from wayline.contracts.received_spans import PART_BYTES_MAX, PART_SPANS_MAX
from wayline.contracts.strict_json import read_json

PROTOBUF, JSON = "application/x-protobuf", "application/json"
GZIP = "gzip"
BYTES_MAX = 4 * 1024 * 1024
"""Of a request, packed or not."""
JSON_BYTES_MAX = 1024 * 1024
"""Of a request in JSON, which takes a hundred times as long to read."""
SPANS_MAX = 20_000
SPAN_BYTES_MAX = PART_BYTES_MAX // 4
RESOURCE_BYTES_MAX = PART_BYTES_MAX // 4
"""Of what a resource and a scope say of themselves, which goes with each part."""
NESTED_MAX = 32
IDS = ("traceId", "spanId", "parentSpanId")


class OtlpPart(NamedTuple):
    """Some of a request's spans, encoded."""

    otlp: bytes
    spans: int


class OtlpParts(NamedTuple):
    """A request cut into parts, and how many spans were left out."""

    parts: list[OtlpPart]
    rejected: int


def read_parts(body: bytes, media_type: str, encoding: str) -> OtlpParts:
    """Read a request. Raises Reject."""
    content = _unpacked(body, encoding)
    request = _from_json(content) if media_type == JSON else _from_protobuf(content)
    return _cut(request)


def _unpacked(body: bytes, encoding: str) -> bytes:
    if len(body) > BYTES_MAX:
        raise _too_large(BYTES_MAX)
    if encoding in ("", "identity"):
        return body
    if encoding != GZIP:
        raise Reject(f"send spans packed by {GZIP} or not at all", code="unsupported_encoding", status=415)
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        content = unpacking.decompress(body, BYTES_MAX + 1)
    except zlib.error:
        raise _invalid("the body is not packed by gzip") from None
    if len(content) > BYTES_MAX:
        raise _too_large(BYTES_MAX)
    if not unpacking.eof or unpacking.unused_data:
        # One member is what exporters send; thousands of empty ones are an attack.
        raise _invalid("the body is not one whole gzip member")
    return content


def _from_protobuf(content: bytes) -> ExportTraceServiceRequest:
    try:
        return ExportTraceServiceRequest.FromString(content)
    except DecodeError:
        raise _invalid("the body is no ExportTraceServiceRequest") from None


def _from_json(content: bytes) -> ExportTraceServiceRequest:
    if len(content) > JSON_BYTES_MAX:
        raise _too_large(JSON_BYTES_MAX)
    try:
        said = read_json(content)
        for span in _spans_of(said):
            _ids_to_base64(span)
        request = ExportTraceServiceRequest()
        return ParseDict(said, request, ignore_unknown_fields=True, max_recursion_depth=NESTED_MAX)
    except (ParseError, NotHex, ValueError, TypeError, AttributeError, RecursionError):
        raise _invalid("the body is no ExportTraceServiceRequest in JSON") from None


def _spans_of(said: Any) -> Iterator[dict[str, Any]]:
    for resource in said.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            yield from scope.get("spans", ())


def _ids_to_base64(span: dict[str, Any]) -> None:
    """Say ids as protobuf's JSON does; OTLP's has them in hex."""
    for holder in (span, *span.get("links", ())):
        for name in IDS:
            if name in holder:
                holder[name] = b64encode(bytes.fromhex(holder[name])).decode()


def _cut(request: ExportTraceServiceRequest) -> OtlpParts:
    """Return parts of so many spans and bytes at most, with the spans whose ids are ids and that fit."""
    parts: list[OtlpPart] = []
    taken = rejected = 0
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            about = resource.resource.ByteSize() + scope.scope.ByteSize()
            spans: list[Any] = []
            size = 0
            for span in scope.spans:
                bytes_ = span.ByteSize()
                valid = len(span.trace_id) == 16 and len(span.span_id) == 8 and any(span.trace_id) and any(span.span_id)
                if not valid or bytes_ > SPAN_BYTES_MAX or about > RESOURCE_BYTES_MAX or taken >= SPANS_MAX:
                    rejected += 1
                    continue
                if len(spans) >= PART_SPANS_MAX or size + bytes_ + about > PART_BYTES_MAX:
                    parts.append(_part(resource, scope, spans))
                    spans, size = [], 0
                spans.append(span)
                size += bytes_
                taken += 1
            if spans:
                parts.append(_part(resource, scope, spans))
    return OtlpParts(parts, rejected)


def _part(resource: Any, scope: Any, spans: list[Any]) -> OtlpPart:
    request = ExportTraceServiceRequest()
    of_resource = request.resource_spans.add(resource=resource.resource, schema_url=resource.schema_url)
    of_scope = of_resource.scope_spans.add(scope=scope.scope, schema_url=scope.schema_url)
    of_scope.spans.extend(spans)
    return OtlpPart(request.SerializeToString(), len(spans))


def encode_answer(rejected: int, reason: str, media_type: str) -> bytes:
    """Return what an exporter is told: nothing, or how many spans were left out and why."""
    answer = ExportTraceServiceResponse()
    if rejected:
        answer.partial_success.rejected_spans = rejected
        answer.partial_success.error_message = reason
    return MessageToJson(answer).encode() if media_type == JSON else answer.SerializeToString()


def _invalid(reason: str) -> Reject:
    return Reject(reason, code="invalid_spans", status=400)


def _too_large(limit: int) -> Reject:
    return Reject(f"spans are taken in requests of {limit} bytes at most", code="spans_too_large", status=413)
