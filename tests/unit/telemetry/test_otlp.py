"""What leaves a service is OTLP: the same bytes as the OpenTelemetry SDK would send, but for what exceptions say."""

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans as encoded_by_sdk
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import SpanContext, SpanKind, StatusCode, TraceFlags, TraceState

from wayline.telemetry import Telemetry
from wayline.telemetry.otlp import encode_spans

REMOTE = SpanContext(0xAB << 120, 0xCD << 56, True, TraceFlags(1), TraceState([("wayline", "00f067aa0ba902b7")]))
STRANGER = SpanContext(7, 8, True, TraceFlags(1))
ATTRIBUTES = {"text": "ü", "whole": 3, "share": 0.5, "yes": True, "bytes": b"\x00\xff", "none": None} | {
    "texts": ("a", "b"),
    "wholes": (1, 2),
    "shares": (0.5,),
    "nested": {"a": [1, {"b": False}]},
}


class Seen(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def decoded(spans: list[ReadableSpan]) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(encode_spans(spans))


def spans_of(request: ExportTraceServiceRequest) -> list[OtlpSpan]:
    return [span for r in request.resource_spans for scope in r.scope_spans for span in scope.spans]


@pytest.mark.parametrize("parent", [None, REMOTE], ids=["a root", "a remote parent"])
@pytest.mark.parametrize("kind", list(SpanKind))
def test_a_span_is_encoded_as_the_sdk_would(parent: SpanContext | None, kind: SpanKind):
    seen = Seen()
    with Telemetry("router", seen).span("one", kind, ATTRIBUTES, parent=parent, links=(STRANGER,)) as span:
        span.add_event("claimed", {"attempt": 2, "epochs": [1, 2]})
        span.add_link(REMOTE, {"why": "resumed"})
        span.set_status(StatusCode.ERROR, "it broke")

    assert decoded(seen.spans) == encoded_by_sdk(seen.spans)


def test_attributes_that_are_equal_keep_their_types():
    seen = Seen()
    telemetry = Telemetry("router", seen)
    for value in (1, True, 1.0, "1", 1, True, 1.0):
        with telemetry.span("one", attributes={"same": value, "other": 1}):
            pass

    assert decoded(seen.spans) == encoded_by_sdk(seen.spans)


def test_spans_of_several_services_and_libraries_keep_resource_and_scope():
    seen = Seen()
    for service in ("router", "executor"):
        telemetry = Telemetry(service, seen)
        for library in ("fastapi", "mcp"):
            telemetry.provider.get_tracer(library, "1", "https://schema", {"a": 1}).start_span("theirs").end()
        with telemetry.span("ours"):
            pass

    assert decoded(seen.spans) == encoded_by_sdk(seen.spans)


@pytest.mark.parametrize("odd", [1 << 63, "\ud800", ["\ud800"]], ids=["too large", "no text", "a list of no text"])
def test_an_attribute_that_protobuf_refuses_costs_itself_alone(odd: object):
    seen = Seen()
    with Telemetry("router", seen).span("one", attributes={"odd": odd, "even": 2}):
        pass

    [span] = spans_of(decoded(seen.spans))
    assert [attribute.key for attribute in span.attributes] == ["even"]


def test_a_local_parent_is_known_as_local():
    seen = Seen()
    telemetry = Telemetry("router", seen)
    with telemetry.span("outer"), telemetry.span("inner"):
        pass

    inner, outer = spans_of(decoded(seen.spans))
    assert (inner.name, inner.parent_span_id, inner.flags) == ("inner", outer.span_id, 0x100)


def test_what_limits_take_from_a_span_is_counted_on_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "2")
    monkeypatch.setenv("OTEL_SPAN_EVENT_COUNT_LIMIT", "1")
    monkeypatch.setenv("OTEL_SPAN_LINK_COUNT_LIMIT", "1")
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3")
    seen = Seen()
    with Telemetry("router", seen).span("one", attributes={"a": 1, "b": 2, "c": "long"}, links=(STRANGER,)) as span:
        span.add_link(REMOTE)
        span.add_event("first")
        span.add_event("second")

    request = decoded(seen.spans)
    [sent] = spans_of(request)
    assert (sent.dropped_attributes_count, sent.dropped_events_count, sent.dropped_links_count) == (1, 1, 1)
    assert sent.attributes[-1].value.string_value == "lon"
    assert request == encoded_by_sdk(seen.spans)


def test_a_librarys_spans_carry_its_service():
    seen = Seen()
    tracer = Telemetry("gateway", seen).provider.get_tracer("fastapi", "1")

    with pytest.raises(KeyError), tracer.start_as_current_span("GET /v1/jobs", attributes={"http.route": "/v1/jobs"}):
        with tracer.start_as_current_span("inner"):
            raise KeyError("secret")

    inner, outer = spans_of(decoded(seen.spans))
    assert inner.parent_span_id == outer.span_id
    assert outer.status.code is StatusCode.ERROR.value


def test_an_exception_leaves_with_its_type_and_without_its_words():
    seen = Seen()
    tracer = Telemetry("gateway", seen).provider.get_tracer("fastapi")

    with pytest.raises(KeyError), tracer.start_as_current_span("GET /v1/jobs"):
        raise KeyError("secret")

    body = encode_spans(seen.spans)
    [span] = spans_of(ExportTraceServiceRequest.FromString(body))
    assert {attribute.key: attribute.value.string_value for attribute in span.events[0].attributes} == {
        "exception.type": "KeyError",
        "exception.escaped": "False",
    }
    assert span.status.message == "KeyError"
    assert b"secret" not in body


def test_a_span_that_has_ended_is_collected_once():
    seen = Seen()
    with Telemetry("router", seen).span("one") as span:
        span.end()

    assert len(seen.spans) == 1
    assert not span.is_recording()
