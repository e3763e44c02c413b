"""What exporters send is read within limits, and cut into parts that the bus carries."""

import gzip
import json
import zlib

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from wayline.contracts.errors import Reject
from wayline.contracts.received_spans import PART_BYTES_MAX, PART_SPANS_MAX
from wayline.gateway import otlp_body
from wayline.gateway.otlp_body import JSON, PROTOBUF, encode_answer, read_parts


def request(
    spans: int, *, size: int = 0, ids: tuple[bytes, bytes] = (b"t" * 16, b"s" * 8)
) -> ExportTraceServiceRequest:
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = resource.scope_spans.add()
    for _ in range(spans):
        span = scope.spans.add(trace_id=ids[0], span_id=ids[1], name="buy")
        span.attributes.add(key="text").value.string_value = "x" * size
    return made


def test_a_request_is_cut_into_parts_with_its_resource_in_each():
    many = read_parts(request(2 * PART_SPANS_MAX + 1).SerializeToString(), PROTOBUF, "")
    large = read_parts(request(9, size=60_000).SerializeToString(), PROTOBUF, "")

    assert [part.spans for part in many.parts] == [PART_SPANS_MAX, PART_SPANS_MAX, 1]
    assert sum(part.spans for part in large.parts) == 9
    assert max(len(part.otlp) for part in (*many.parts, *large.parts)) < PART_BYTES_MAX + 1_000
    for part in many.parts:
        [resource] = ExportTraceServiceRequest.FromString(part.otlp).resource_spans
        assert resource.resource.attributes[0].value.string_value == "shop"


def test_spans_of_many_resources_share_a_part():
    made = ExportTraceServiceRequest()
    for number in range(PART_SPANS_MAX + 2):
        resource = made.resource_spans.add(schema_url=f"of {number}")
        for name in ("left out", "kept"):
            ids = {"trace_id": b"t" * 16, "span_id": b"s" * 8} if name == "kept" else {}
            resource.scope_spans.add().spans.add(name=f"{name} {number}", **ids)

    cut = read_parts(made.SerializeToString(), PROTOBUF, "")

    assert ([part.spans for part in cut.parts], cut.rejected) == ([PART_SPANS_MAX, 2], PART_SPANS_MAX + 2)
    resources = [one for part in cut.parts for one in ExportTraceServiceRequest.FromString(part.otlp).resource_spans]
    read = [(one.schema_url, one.scope_spans[0].spans[0].name) for one in resources]
    assert read == [(f"of {number}", f"kept {number}") for number in range(PART_SPANS_MAX + 2)]


def test_a_large_resource_with_many_scopes_is_once_in_a_part():
    made = request(0)
    made.resource_spans[0].resource.attributes.add(key="text").value.string_value = "x" * 60_000
    for number in range(2 * PART_SPANS_MAX):
        scope = made.resource_spans[0].scope_spans.add()
        scope.scope.name = f"scope {number}"
        scope.spans.add(trace_id=b"t" * 16, span_id=b"s" * 8)

    cut = read_parts(made.SerializeToString(), PROTOBUF, "")

    assert [part.spans for part in cut.parts] == [PART_SPANS_MAX] * 2
    read = [ExportTraceServiceRequest.FromString(part.otlp).resource_spans for part in cut.parts]
    assert [len(resources) for resources in read] == [1, 1]
    names = [scope.scope.name for [resource] in read for scope in resource.scope_spans if scope.spans]
    assert names == [f"scope {number}" for number in range(2 * PART_SPANS_MAX)]


@pytest.mark.slow
@pytest.mark.parametrize("deep", [0, 1, 2], ids=["resources", "scopes", "spans"])
def test_a_request_of_countless_empty_parts_is_not_built(deep: int, monkeypatch: pytest.MonkeyPatch):
    body = b"\x0a\x00" * 1_000_000 if deep == 0 else b"\x12\x00" * 1_000_000
    for number in (2, 1)[2 - deep :]:
        body = bytes([number << 3 | 2]) + _varint(len(body)) + body
    monkeypatch.setattr(otlp_body, "ExportTraceServiceRequest", None)

    for encoding, sent in (("", body), ("gzip", gzip.compress(body, mtime=0))):
        with pytest.raises(Reject, match="too many parts"):
            read_parts(sent, PROTOBUF, encoding)


def test_json_of_countless_objects_is_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(otlp_body, "read_json", None)
    body = b'{"resourceSpans": [' + b"{}," * 200_000 + b"{}]}"

    with pytest.raises(Reject, match="too many parts"):
        read_parts(body, JSON, "")


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


@pytest.mark.parametrize("ids", [(b"", b"s" * 8), (b"t" * 16, b"s"), (bytes(16), b"s" * 8), (b"t" * 16, bytes(8))])
def test_spans_without_ids_and_spans_too_large_are_left_out(ids: tuple[bytes, bytes]):
    assert read_parts(request(3, ids=ids).SerializeToString(), PROTOBUF, "") == ([], 3)
    assert read_parts(request(2, size=100_000).SerializeToString(), PROTOBUF, "") == ([], 2)


def test_ids_in_json_are_hex_and_unknown_fields_are_passed_over():
    span = {"traceId": "0A" * 16, "spanId": "0b" * 8, "parentSpanId": "0c" * 8, "name": "n", "kind": 3, "new": {}}
    span |= {"startTimeUnixNano": "1700000000000000000", "links": [{"traceId": "0d" * 16, "spanId": "0e" * 8}]}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}], "future": 1}]}).encode()

    [part] = read_parts(gzip.compress(body, mtime=0), JSON, "gzip").parts

    [resource] = ExportTraceServiceRequest.FromString(part.otlp).resource_spans
    [read] = resource.scope_spans[0].spans
    assert (read.trace_id.hex(), read.span_id.hex(), read.parent_span_id.hex()) == ("0a" * 16, "0b" * 8, "0c" * 8)
    assert (read.links[0].span_id.hex(), read.start_time_unix_nano) == ("0e" * 8, 1_700_000_000_000_000_000)


@pytest.mark.parametrize(
    ("body", "media_type", "encoding", "status"),
    [
        (b"\xff\xff", PROTOBUF, "", 400),
        (b"\x80" * 11, PROTOBUF, "", 400),
        (b"\x0a\x05ab", PROTOBUF, "", 400),
        (b"\x0b", PROTOBUF, "", 400),
        (b"\x0d\x00", PROTOBUF, "", 400),
        (b"{", JSON, "", 400),
        (b"[1]", JSON, "", 400),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xyz"}]}]}]}', JSON, "", 400),
        (b'{"resourceSpans": 7}', JSON, "", 400),
        (b'{"resourceSpans": [7]}', JSON, "", 400),
        (b"not packed", PROTOBUF, "gzip", 400),
        (gzip.compress(b"", mtime=0) * 2, PROTOBUF, "gzip", 400),
        (gzip.compress(b"abc", mtime=0)[:-4], PROTOBUF, "gzip", 400),
        (gzip.compress(bytes(otlp_body.BYTES_MAX + 1), mtime=0), PROTOBUF, "gzip", 413),
        (bytes(otlp_body.BYTES_MAX + 1), PROTOBUF, "", 413),
        (b" " * (otlp_body.JSON_BYTES_MAX + 1), JSON, "", 413),
        (zlib.compress(b""), PROTOBUF, "deflate", 415),
    ],
)
def test_what_is_no_request_or_too_large_is_refused(body: bytes, media_type: str, encoding: str, status: int):
    with pytest.raises(Reject) as refused:
        read_parts(body, media_type, encoding)

    assert refused.value.status == status


def test_values_nested_without_end_are_refused():
    value: dict[str, object] = {"stringValue": "deep"}
    for _ in range(200):
        value = {"arrayValue": {"values": [value]}}
    span = {"traceId": "0a" * 16, "spanId": "0b" * 8, "attributes": [{"key": "k", "value": value}]}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()

    with pytest.raises(Reject):
        read_parts(body, JSON, "")


def test_an_exporter_is_told_how_many_spans_were_rejected():
    told = ExportTraceServiceResponse.FromString(encode_answer(3, "too old", PROTOBUF))

    assert (told.partial_success.rejected_spans, told.partial_success.error_message) == (3, "too old")
    assert encode_answer(0, "", PROTOBUF) == b""
    assert json.loads(encode_answer(3, "too old", JSON)) == {
        "partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}
    }
    assert json.loads(encode_answer(0, "", JSON)) == {}
