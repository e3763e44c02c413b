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
from wayline.gateway.protobuf_walk import NotProtobuf, ProtobufWalk, TooManyFields

PROTOBUF, JSON = "application/x-protobuf", "application/json"
GZIP = "gzip"
BYTES_MAX = 4 * 1024 * 1024
"""Of a request, packed or not."""
JSON_BYTES_MAX = 1024 * 1024
"""Of a request in JSON, which takes a hundred times as long to read."""
SPANS_MAX = 20_000
FIELDS_MAX = 100_000
"""Of a request in protobuf, down to its spans: resources, scopes and spans are some of them."""
JSON_BRACKETS_MAX = 100_000
"""Objects and lists of a request in JSON, and brackets in its texts."""
SPAN_BYTES_MAX = PART_BYTES_MAX // 4
RESOURCE_BYTES_MAX = PART_BYTES_MAX // 4
"""Of what a resource and a scope say of themselves, which goes with each part."""
NESTED_MAX = 32
SPAN_PATH = (1, 2, 2)
"""Numbers of the fields `resource_spans`, `scope_spans` and `spans`."""
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
        # Counted first: a field takes two bytes here, and hundreds once it is read.
        for _ in ProtobufWalk(content, fields_max=FIELDS_MAX).messages(SPAN_PATH):
            pass
        return ExportTraceServiceRequest.FromString(content)
    except TooManyFields:
        raise _too_many() from None
    except (NotProtobuf, DecodeError):
        raise _invalid("the body is no ExportTraceServiceRequest") from None


def _from_json(content: bytes) -> ExportTraceServiceRequest:
    if len(content) > JSON_BYTES_MAX:
        raise _too_large(JSON_BYTES_MAX)
    if content.count(b"{") + content.count(b"[") > JSON_BRACKETS_MAX:
        raise _too_many()
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
    cut = _Cut()
    rejected = 0
    for resource in request.resource_spans:
        of_resource = resource.resource.ByteSize() + len(resource.schema_url)
        cut.begin_resource(resource, of_resource)
        for scope in resource.scope_spans:
            of_scope = scope.scope.ByteSize() + len(scope.schema_url)
            about = of_resource + of_scope
            cut.begin_scope(scope, of_scope)
            for span in scope.spans:
                size = span.ByteSize()
                valid = len(span.trace_id) == 16 and len(span.span_id) == 8 and any(span.trace_id) and any(span.span_id)
                if not valid or size > SPAN_BYTES_MAX or about > RESOURCE_BYTES_MAX or cut.spans >= SPANS_MAX:
                    rejected += 1
                else:
                    cut.add(span, size)
    return OtlpParts(cut.parts(), rejected)


class _Cut:
    """Parts of a request, filled one after the other: spans of several resources and scopes go into one."""

    def __init__(self) -> None:
        self.spans = 0
        self._parts: list[OtlpPart] = []
        self._request = ExportTraceServiceRequest()
        self._size = self._here = 0
        self._resource: Any = None
        self._scope: Any = None
        self._resource_size = self._scope_size = 0
        self._resource_here: Any = None
        """The resource in the last part, once it is there: its scopes share it."""
        self._scope_here: Any = None

    def begin_resource(self, resource: Any, size: int) -> None:
        """Say of which resource the next spans are, and how many bytes it takes."""
        self._resource, self._resource_size, self._resource_here = resource, size, None

    def begin_scope(self, scope: Any, size: int) -> None:
        """Say of which scope the next spans are, and how many bytes it takes."""
        self._scope, self._scope_size, self._scope_here = scope, size, None

    def add(self, span: Any, size: int) -> None:
        """Add a span to the last part, or to a new one where that is full."""
        more = size
        more += self._resource_size if self._resource_here is None else 0
        more += self._scope_size if self._scope_here is None else 0
        if self._here >= PART_SPANS_MAX or self._size + more > PART_BYTES_MAX:
            self._close()
            more = size + self._resource_size + self._scope_size
        if self._resource_here is None:
            of, url = self._resource.resource, self._resource.schema_url
            self._resource_here = self._request.resource_spans.add(resource=of, schema_url=url)
        if self._scope_here is None:
            of, url = self._scope.scope, self._scope.schema_url
            self._scope_here = self._resource_here.scope_spans.add(scope=of, schema_url=url)
        self._scope_here.spans.append(span)
        self._size += more
        self._here += 1
        self.spans += 1

    def parts(self) -> list[OtlpPart]:
        """Return all parts."""
        self._close()
        return self._parts

    def _close(self) -> None:
        if self._here:
            self._parts.append(OtlpPart(self._request.SerializeToString(), self._here))
        self._request, self._size, self._here = ExportTraceServiceRequest(), 0, 0
        self._resource_here = self._scope_here = None


def encode_answer(rejected: int, reason: str, media_type: str) -> bytes:
    """Return what an exporter is told: nothing, or how many spans were left out and why."""
    answer = ExportTraceServiceResponse()
    if rejected:
        answer.partial_success.rejected_spans = rejected
        answer.partial_success.error_message = reason
    return MessageToJson(answer).encode() if media_type == JSON else answer.SerializeToString()


def _invalid(reason: str) -> Reject:
    return Reject(reason, code="invalid_spans", status=400)


def _too_many() -> Reject:
    return Reject("the request has too many parts: send fewer spans at once", code="spans_too_large", status=413)


def _too_large(limit: int) -> Reject:
    return Reject(f"spans are taken in requests of {limit} bytes at most", code="spans_too_large", status=413)
