"""What of a request's address stands in its span."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wayline.gateway.shown_queries import ShownQueries, shown_query


def test_only_parameters_that_are_named_are_shown():
    assert (
        shown_query("code=abc&state=xyz&limit=5&new=1&limit=")
        == "code=REDACTED&state=REDACTED&limit=5&new=REDACTED&limit="
    )


def test_a_span_is_exported_without_the_code_of_a_login():
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    provider.add_span_processor(ShownQueries())

    with provider.get_tracer("t").start_as_current_span("GET", attributes={"url.query": "code=secret&state=s&wait=3"}):
        pass

    [span] = exporter.get_finished_spans()
    assert (span.attributes or {})["url.query"] == "code=REDACTED&state=REDACTED&wait=3"
