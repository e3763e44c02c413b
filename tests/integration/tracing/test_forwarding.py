"""Spans go on to the user's collector by OpenTelemetry's own exporters: whole, in bounds, and nothing waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from wayline.contracts import ids
from wayline.contracts.errors import WrongSetting
from wayline.telemetry import metrics
from wayline.telemetry.tracer_provider import make_provider
from wayline.testkit import until
from wayline.tracing.adapters import collector as forwarding
from wayline.tracing.adapters.collector import Collector
from wayline.tracing.adapters.otlp_exporter import is_wanted, make_exporter
from wayline.tracing.rows import SpanRow, as_json
from wayline.tracing.settings import Settings

from .conftest import QUICK, Log, Start, TracingPlatform
from .receivers import Received, over_grpc, over_http

TRACE = bytes(range(16))
AT = datetime(2026, 11, 23, 1, 2, 3, 456_789, UTC)
AT_NS = int(AT.timestamp()) * 10**9 + 456_789_000
RECEIVERS = {"http/protobuf": over_http, "grpc": over_grpc}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "")


@pytest.fixture(params=list(RECEIVERS))
async def receiver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Received]:
    """Run a collector of either protocol that the variables of every OTLP exporter name."""
    async with RECEIVERS[request.param]() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", request.param)
        yield received


@pytest.fixture
async def start_collector() -> AsyncIterator[Callable[..., AbstractAsyncContextManager[Collector]]]:
    started: list[Collector] = []

    async def begin(settings: Settings | None = None) -> Collector:
        found = settings or Settings()
        collector = Collector(lambda: make_exporter(found))
        started.append(collector)
        await collector.start()
        return collector

    yield begin
    for collector in started:
        await collector.close(0)


def attribute(key: str, **value: object) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(**value))  # pyright: ignore[reportArgumentType]


def ints(*items: int) -> ArrayValue:
    return ArrayValue(values=[AnyValue(int_value=item) for item in items])


def leaf(number: int = 1) -> Span:
    """Make a span with everything that OTLP can say of it."""
    return Span(
        trace_id=TRACE,
        span_id=number.to_bytes(8, "big"),
        parent_span_id=b"\x09" * 8,
        trace_state="wayline=00f067aa0ba902b7,vendor=x",
        name="tools/call search",
        kind=Span.SPAN_KIND_CLIENT,
        flags=0x300,
        start_time_unix_nano=AT_NS + 1,
        end_time_unix_nano=AT_NS + 5_000_003,
        attributes=[
            attribute("text", string_value="ü"),
            attribute("whole", int_value=3),
            attribute("share", double_value=0.5),
            attribute("yes", bool_value=True),
            attribute("bytes", bytes_value=b"\x00\xff"),
            attribute("list", array_value=ints(1, 2)),
            attribute("nested", kvlist_value=KeyValueList(values=[attribute("a", array_value=ints(7))])),
            attribute("nothing"),
        ],
        events=[Span.Event(name="claimed", time_unix_nano=AT_NS, attributes=[attribute("list", array_value=ints(4))])],
        links=[
            Span.Link(trace_id=b"\x07" * 16, span_id=b"\x08" * 8, flags=0x300, attributes=[attribute("n", int_value=1)])
        ],
        status=Status(code=Status.STATUS_CODE_ERROR, message="it broke"),
        dropped_attributes_count=2,
        dropped_events_count=3,
        dropped_links_count=4,
    )


def batch(*spans: Span) -> bytes:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add(schema_url="https://example.com/schema")
    resource_spans.resource.attributes.extend(
        [attribute("service.name", string_value="tool-registry"), attribute("ports", array_value=ints(1, 2))]
    )
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name, scope_spans.scope.version = "wayline", "1"
    scope_spans.spans.extend(spans)
    return request.SerializeToString()


def row(number: int = 1) -> SpanRow:
    """Make a span as tracing makes it from the log."""
    return SpanRow(
        trace_id=TRACE.hex(),
        span_id=f"{number:016x}",
        start=AT,
        tenant="acme",
        parent_span_id="09" * 8,
        anchor=None,
        service="executor",
        name="chat claude",
        kind="client",
        duration_ms=800.0,
        status="ok",
        attributes=as_json({"finish": ["a", "b"], "tokens": 10, "share": 0.5, "yes": True}),
        links=as_json([{"trace_id": "07" * 16, "span_id": "08" * 8}]),
        events=as_json([{"name": "claimed", "at": AT.isoformat(), "attributes": {"epochs": [1, 2]}}]),
        usage=None,
        cost_usd=None,
        seq=1,
    )


def dropped(where: str) -> float:
    return metrics.spans_dropped.labels("tracing", where)._value.get()


async def test_a_services_span_arrives_whole(receiver: Received, start_collector):
    collector = await start_collector()
    collector.forward(batch(leaf()), 1)

    await until(lambda: receiver.requests, why="the collector has the batch")

    assert receiver.requests == [ExportTraceServiceRequest.FromString(batch(leaf()))]


async def test_a_span_made_from_the_log_arrives_whole(receiver: Received, start_collector, monkeypatch):
    collector = await start_collector()
    collector.forward_rows([row()])

    await until(lambda: receiver.requests, why="the collector has the batch")

    [(resource, span)] = receiver.spans().values()
    assert attribute("service.name", string_value="executor") in resource.attributes
    assert span == Span(
        trace_id=TRACE,
        span_id=(1).to_bytes(8, "big"),
        parent_span_id=b"\x09" * 8,
        name="chat claude",
        kind=Span.SPAN_KIND_CLIENT,
        flags=0x100,
        start_time_unix_nano=AT_NS,
        end_time_unix_nano=AT_NS + 800_000_000,
        attributes=[
            attribute("finish", array_value=ArrayValue(values=[AnyValue(string_value=x) for x in "ab"])),
            attribute("tokens", int_value=10),
            attribute("share", double_value=0.5),
            attribute("yes", bool_value=True),
        ],
        events=[
            Span.Event(name="claimed", time_unix_nano=AT_NS, attributes=[attribute("epochs", array_value=ints(1, 2))])
        ],
        links=[Span.Link(trace_id=b"\x07" * 16, span_id=b"\x08" * 8, flags=0x300)],
        status=Status(code=Status.STATUS_CODE_OK),
    )


async def test_a_batch_with_a_span_without_ids_leaves_that_one_out(receiver: Received, start_collector):
    collector = await start_collector()
    collector.forward(batch(Span(trace_id=b"short", span_id=b"1", name="odd"), leaf(2)), 1)

    await until(lambda: receiver.requests, why="the collector has the batch")

    assert list(receiver.spans()) == [f"{2:016x}"]


async def test_log_spans_of_sampled_jobs_are_forwarded(receiver: Received, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    collector = Collector(lambda: make_exporter(Settings()), make_provider("tracing").sampler)
    await collector.start()
    low, high = row(1)._replace(trace_id="7f" * 16), row(2)._replace(trace_id="80" * 16)
    collector.forward_rows([high, low, high])

    await collector.close(30)

    assert list(receiver.spans()) == [f"{1:016x}"]


async def test_headers_and_compression_are_those_of_the_variables(receiver: Received, start_collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x,x-org=acme")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    collector = await start_collector()
    collector.forward(batch(leaf()), 1)

    await until(lambda: receiver.requests, why="the collector has the batch")

    [headers] = receiver.headers
    assert (headers["authorization"], headers["x-org"]) == ("Bearer x", "acme")
    # gRPC shows its handlers no header of its own.
    assert headers.get("content-encoding") == ("gzip" if "host" in headers else None)


async def test_the_endpoint_of_traces_is_taken_as_it_stands(start_collector, monkeypatch):
    async with over_http(path="/custom") as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{received.endpoint}/custom")
        collector = await start_collector()
        collector.forward(batch(leaf()), 1)

        await until(lambda: received.requests, why="the collector has the batch")


@pytest.mark.parametrize("path", ["", "/", "/v1/traces"])
async def test_waylines_own_settings_come_before_the_variables(start_collector, monkeypatch, path: str):
    async with over_http() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        settings = Settings(otlp_endpoint=received.endpoint + path, otlp_headers="Authorization=Bearer a=b")
        collector = await start_collector(settings)
        collector.forward(batch(leaf()), 1)

        await until(lambda: received.requests, why="the collector has the batch")

        assert received.headers[0]["authorization"] == "Bearer a=b"


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
        ({"OTEL_TRACES_EXPORTER": "none", "WAYLINE_TRACING_OTLP_ENDPOINT": "http://c:4318"}, True),
    ],
)
def test_spans_are_forwarded_only_where_configured(monkeypatch, variables: dict[str, str], wanted: bool):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert is_wanted(Settings()) is wanted


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "soon")],
)
async def test_a_variable_that_cannot_be_used_stops_the_start(start_collector, monkeypatch, name: str, value: str):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv(name, value)

    with pytest.raises(WrongSetting, match=value):
        await start_collector()


async def test_a_stuck_collector_holds_nothing_up_and_the_bound_is_counted(receiver, start_collector, monkeypatch):
    monkeypatch.setattr(forwarding, "WAITING_MAX", 5)
    before = dropped("forward queue")
    receiver.answering.clear()
    collector = await start_collector()
    collector.forward(batch(leaf(1)), 1)
    await asyncio.wait_for(receiver.asked.wait(), 10)

    for number in range(2, 12):
        collector.forward(batch(leaf(number)), 1)
    assert dropped("forward queue") - before == 5
    receiver.answering.set()

    await until(lambda: len(receiver.spans()) == 6, why="what was taken arrives after all")
    assert list(receiver.spans()) == [f"{number:016x}" for number in range(1, 7)]


async def test_spans_for_a_collector_that_is_away_are_dropped_and_counted(start_collector, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    before = dropped("forward")
    collector = await start_collector()
    collector.forward(batch(leaf(1), leaf(2)), 2)
    collector.forward_rows([row(3)])

    await until(lambda: dropped("forward") - before == 3, why="every span is counted as dropped")


async def test_an_unreadable_batch_costs_no_other_batch(receiver, start_collector):
    before = dropped("forward")
    collector = await start_collector()
    collector.forward(b"\xff no protobuf", 7)
    await until(lambda: dropped("forward") - before == 7, why="the unreadable batch is counted")

    collector.forward(batch(leaf()), 1)

    await until(lambda: receiver.requests, why="the collector has the next batch")


async def test_closing_sends_what_waits(receiver: Received, start_collector):
    collector = await start_collector()
    for number in range(1, 1_001):
        collector.forward_rows([row(number)])

    await collector.close(30)

    assert len(receiver.spans()) == 1_000
    assert all(sum(len(s.spans) for r in q.resource_spans for s in r.scope_spans) <= 512 for q in receiver.requests)


async def test_closing_drops_and_counts_what_a_stuck_collector_left(receiver: Received, start_collector):
    receiver.answering.clear()
    before = dropped("forward")
    collector = await start_collector()
    collector.forward(batch(leaf(1)), 1)
    await asyncio.wait_for(receiver.asked.wait(), 10)
    collector.forward(batch(leaf(2)), 1)
    collector.forward_rows([row(3)])

    await collector.close(0)

    assert dropped("forward") - before >= 2


async def test_a_jobs_tree_is_forwarded_with_its_services_leaves(
    platform: TracingPlatform, start: Start, receiver: Received
):
    await start()
    await Log(platform.bus).whole()
    await platform.bus.store("telemetry.traces", batch(leaf()), {})

    wanted = {ids.job_span("acme", "j1"), ids.tool_span("acme", "j1", 1, "1"), ids.model_span("acme", "j1", 2, 1)}
    await until(lambda: wanted | {f"{1:016x}"} <= set(receiver.spans()), why="the collector has the tree")

    _, root = receiver.spans()[ids.job_span("acme", "j1")]
    assert root.name == "invoke_agent assistant"
    assert root.trace_id.hex() == ids.trace_id("acme", "j1")
    assert (
        root.end_time_unix_nano - root.start_time_unix_nano == timedelta(seconds=9) / timedelta(microseconds=1) * 1000
    )
    assert receiver.spans()[ids.tool_span("acme", "j1", 1, "1")][1].parent_span_id


async def test_a_collector_that_is_away_stops_nothing(platform: TracingPlatform, start: Start):
    await start(QUICK.model_copy(update={"otlp_endpoint": "http://127.0.0.1:9"}))
    await Log(platform.bus).whole()
    await platform.wait_until_read()

    assert (await platform.trace("j1")).root.status == "ok"
