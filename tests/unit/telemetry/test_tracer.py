"""A recorded span says what the SDK's own span would say."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import Tracer
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, set_span_in_context

from wayline.telemetry import JobTrace, Telemetry
from wayline.telemetry.otlp import encode_spans
from wayline.telemetry.tracer import RecordedSpan

JOB_TRACE = JobTrace.of("acme", "j1").context()
FOREIGN = SpanContext(1, 2, is_remote=True)


def exported(seen: InMemorySpanExporter, block: AbstractContextManager[Span], act: Callable[[Span], object]):
    seen.clear()
    with block as span:
        act(span)
    batch = ExportTraceServiceRequest.FromString(encode_spans(seen.get_finished_spans()))
    [out] = batch.resource_spans[0].scope_spans[0].spans
    out.ClearField("span_id")
    out.ClearField("start_time_unix_nano")
    out.ClearField("end_time_unix_nano")
    for event in out.events:
        event.ClearField("time_unix_nano")
    return out


def fail(span: Span) -> None:
    span.record_exception(KeyError("secret"))
    span.set_status(Status(StatusCode.ERROR, "secret"))


@pytest.mark.parametrize(
    "act",
    [
        lambda span: None,
        lambda span: span.set_attributes({"b": 1, "c": True, "d": 0.5}),
        lambda span: span.set_attribute("words", ["one", "two"]),
        lambda span: span.set_attribute("odd", object()),
        lambda span: span.set_attributes({f"key {number}": number for number in range(200)}),
        lambda span: [span.add_event(f"event {number}", {"n": number}) for number in range(150)],
        lambda span: span.add_link(FOREIGN, {"why": "it was sent from there"}),
        lambda span: span.update_name("another"),
        fail,
    ],
    ids=["nothing", "plain", "list", "odd", "too many", "events", "link", "name", "exception"],
)
def test_a_recorded_span_is_exported_as_the_sdks_own(act: Callable[[Span], object]):
    seen = InMemorySpanExporter()
    telemetry = Telemetry("router", SimpleSpanProcessor(seen))
    tracer = telemetry.provider.get_tracer("wayline")
    assert isinstance(tracer, Tracer)
    above = set_span_in_context(NonRecordingSpan(JOB_TRACE))

    made: list[Span] = []

    def ours(span: Span) -> None:
        made.append(span)
        act(span)

    recorded = exported(seen, telemetry.span("call", SpanKind.CLIENT, {"a": "x"}, parent=JOB_TRACE), ours)
    by_sdk = exported(seen, tracer.start_as_current_span("call", above, SpanKind.CLIENT, {"a": "x"}), act)

    assert isinstance(made[0], RecordedSpan)
    assert recorded == by_sdk


def test_an_ended_span_stays_as_it_was():
    seen = InMemorySpanExporter()
    telemetry = Telemetry("router", SimpleSpanProcessor(seen))

    with telemetry.span("call", parent=JOB_TRACE) as span:
        pass
    span.set_attribute("late", 1)
    span.set_attributes({"later": 2})
    span.add_event("last")
    span.end()

    [ended] = seen.get_finished_spans()
    assert (dict(ended.attributes or {}), ended.events) == ({}, ())


def test_a_limit_on_values_length_is_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3")
    seen = InMemorySpanExporter()
    telemetry = Telemetry("router", SimpleSpanProcessor(seen))

    with telemetry.span("call", attributes={"a": "abcdef"}, parent=JOB_TRACE):
        pass

    [span] = seen.get_finished_spans()
    assert dict(span.attributes or {}) == {"a": "abc"}
