"""What leaves a service is OTLP: the same bytes as the OpenTelemetry SDK would send for the same span."""

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans as encoded_by_sdk
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, TraceFlags, TraceState

from wayline.telemetry import Telemetry
from wayline.telemetry.otlp import encode_spans
from wayline.telemetry.recording import Span

REMOTE = SpanContext(0xAB << 120, 0xCD << 56, True, TraceFlags(1), TraceState([("wayline", "00f067aa0ba902b7")]))
STRANGER = SpanContext(7, 8, True, TraceFlags(1))
ATTRIBUTES = {"text": "ü", "whole": 3, "share": 0.5, "yes": True, "list": ("a", "b")}


class Seen(list[Span]):
    def on_end(self, span: Span) -> None:
        self.append(span)


def as_sdk(span: Span) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=Resource({"service.name": span.service}),
        attributes=span.attributes,
        events=[Event(name, attributes, at) for name, at, attributes in span.events],
        links=span.links,
        kind=span.kind,
        instrumentation_scope=InstrumentationScope("wayline"),
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
    )


@pytest.mark.parametrize("parent", [None, REMOTE], ids=["a root", "a remote parent"])
@pytest.mark.parametrize("kind", list(SpanKind))
def test_a_span_is_encoded_as_the_sdk_would(parent: SpanContext | None, kind: SpanKind):
    seen = Seen()
    with Telemetry("router", seen).span("one", kind, ATTRIBUTES, parent=parent, links=(STRANGER,)) as span:
        span.add_event("claimed", {"attempt": 2})
        span.set_status(StatusCode.ERROR, "it broke")
    [ours] = seen
    ours.links = (*ours.links, Link(REMOTE, {"why": "resumed"}))

    assert ExportTraceServiceRequest.FromString(encode_spans(seen)) == encoded_by_sdk([as_sdk(ours)])


def test_attributes_that_are_equal_keep_their_types():
    seen = Seen()
    telemetry = Telemetry("router", seen)
    for value in (1, True, 1.0, "1", 1, True, 1.0):
        with telemetry.span("one", attributes={"same": value, "other": 1}):
            pass

    assert ExportTraceServiceRequest.FromString(encode_spans(seen)).resource_spans[0].scope_spans[0].spans[:] == [
        span for one in seen for span in encoded_by_sdk([as_sdk(one)]).resource_spans[0].scope_spans[0].spans
    ]


def test_what_otlp_has_no_type_for_is_left_out():
    seen = Seen()
    with Telemetry("router", seen).span("one", attributes={"odd": {"a": 1}, "none": None, "list": ["a"], "even": 2}):
        pass

    [span] = ExportTraceServiceRequest.FromString(encode_spans(seen)).resource_spans[0].scope_spans[0].spans
    assert [attribute.key for attribute in span.attributes] == ["list", "even"]


def test_spans_of_one_service_share_a_resource_and_a_local_parent_is_known_as_local():
    seen = Seen()
    telemetry = Telemetry("router", seen)
    with telemetry.span("outer"), telemetry.span("inner"):
        pass

    request = ExportTraceServiceRequest.FromString(encode_spans(seen))
    assert request == encoded_by_sdk([as_sdk(span) for span in seen])
    [resource] = request.resource_spans
    inner, outer = resource.scope_spans[0].spans
    assert (inner.name, inner.parent_span_id, inner.flags) == ("inner", outer.span_id, 0x100)


def test_a_library_that_asks_for_a_provider_writes_spans_of_its_service():
    seen = Seen()
    tracer = Telemetry("gateway", seen).provider.get_tracer("fastapi", "1")

    with pytest.raises(KeyError), tracer.start_as_current_span("GET /v1/jobs", attributes={"http.route": "/v1/jobs"}):
        with tracer.start_as_current_span("inner"):
            raise KeyError("secret")

    inner, outer = seen
    assert inner.parent == outer.context
    assert outer.status.status_code is StatusCode.ERROR
    assert outer.events[0][2] == {"exception.type": "KeyError"}
    assert "secret" not in repr(outer.events)


def test_a_span_that_has_ended_is_collected_once():
    seen = Seen()
    with Telemetry("router", seen).span("one") as span:
        span.end()

    assert seen == [span]
    assert not span.is_recording()
