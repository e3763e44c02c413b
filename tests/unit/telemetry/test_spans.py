"""Spans: where they hang, and that losing them never hurts a job."""

import asyncio

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from wayline.contracts import ids
from wayline.telemetry import BusExporter, JobTrace, Telemetry, carried, remote
from wayline.telemetry.export import BATCH_MAX


@pytest.fixture
def seen():
    return InMemorySpanExporter()


@pytest.fixture
def telemetry(seen):
    return Telemetry("router", SimpleSpanProcessor(seen))


def test_a_message_of_the_jobs_trace_has_its_sender_as_parent(telemetry, seen):
    job_trace = JobTrace.of("acme", "j1")
    sender = {"traceparent": f"00-{job_trace.trace_id}-{'ab' * 8}-01"}

    with telemetry.handling("jobs.submit.{tenant}", sender, job_trace=job_trace):
        pass

    [span] = seen.get_finished_spans()
    assert format(span.parent.span_id, "016x") == "ab" * 8
    assert span.links == ()
    assert span.name == "process jobs.submit.{tenant}"


def test_a_foreign_trace_becomes_a_link(telemetry, seen):
    job_trace = JobTrace.of("acme", "j1")
    stranger = {"traceparent": f"00-{'cd' * 16}-{'ab' * 8}-01"}

    with telemetry.handling("jobs.submit.{tenant}", stranger, job_trace=job_trace):
        pass

    [span] = seen.get_finished_spans()
    assert format(span.context.trace_id, "032x") == ids.trace_id("acme", "j1")
    assert format(span.parent.span_id, "016x") == ids.job_span("acme", "j1")
    assert [format(link.context.trace_id, "032x") for link in span.links] == ["cd" * 16]


def test_headers_sent_within_a_span_carry_it_and_its_anchor(telemetry, seen):
    job_trace = JobTrace.of("acme", "j1", ids.tool_span("acme", "j1", 1, "1"))

    with telemetry.handling("tools.call.{tenant}", job_trace.headers()):
        headers = carried()

    [span] = seen.get_finished_spans()
    sent = remote(headers)
    assert sent is not None and sent.span_id == span.context.span_id
    assert sent.trace_state.get("wayline") == job_trace.span_id, "whoever loses this span finds the tool's own"


def test_an_error_marks_its_span_and_passes_on(telemetry, seen):
    with pytest.raises(KeyError), telemetry.calling("tools/call x"):
        raise KeyError("secret")

    [span] = seen.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "KeyError"
    assert "secret" not in repr(vars(span))


@pytest.mark.parametrize("header", ["", "junk", "00-zz-yy-01", f"00-{'0' * 32}-{'0' * 16}-01", "00-12-34-01"])
def test_a_malformed_traceparent_is_no_sender(header):
    assert remote({"traceparent": header}) is None


async def test_finished_spans_leave_as_otlp_and_the_last_on_stopping():
    sent = []

    async def send(batch: bytes) -> None:
        sent.append(ExportTraceServiceRequest.FromString(batch))

    exporter = BusExporter("router")
    telemetry = Telemetry("router", exporter)
    exporter.start(send)
    with telemetry.calling("one"):
        pass
    await exporter.stop()

    [batch] = sent
    assert [span.name for span in batch.resource_spans[0].scope_spans[0].spans] == ["one"]


@pytest.mark.parametrize("turns", range(6))
async def test_an_exporter_that_has_just_been_woken_stops_all_the_same(turns):
    sent = []

    async def send(batch: bytes) -> None:
        sent.append(ExportTraceServiceRequest.FromString(batch))

    exporter = BusExporter("router")
    exporter.start(send)
    telemetry = Telemetry("router", exporter)
    await asyncio.sleep(0)
    for _ in range(BATCH_MAX):
        with telemetry.calling("one"):
            pass
    for _ in range(turns):
        await asyncio.sleep(0)

    stopping = asyncio.create_task(exporter.stop())
    await asyncio.wait({stopping}, timeout=10)

    assert stopping.done()
    assert sum(len(batch.resource_spans[0].scope_spans[0].spans) for batch in sent) == BATCH_MAX


async def test_a_batch_under_way_when_the_exporter_stops_arrives():
    begun, go_on, sent = asyncio.Event(), asyncio.Event(), []

    async def send(batch: bytes) -> None:
        begun.set()
        await go_on.wait()
        sent.append(batch)

    exporter = BusExporter("router")
    exporter.start(send)
    with Telemetry("router", exporter).calling("one"):
        pass
    await asyncio.wait_for(begun.wait(), 10)
    stopping = asyncio.create_task(exporter.stop())
    await asyncio.sleep(0)
    go_on.set()
    await stopping

    assert len(sent) == 1


async def test_spans_are_dropped_and_counted_before_they_ever_block(monkeypatch):
    from wayline.telemetry import metrics

    monkeypatch.setattr("wayline.telemetry.export.BUFFER_MAX", 3)
    stuck = asyncio.Event()

    async def send(_: bytes) -> None:
        await stuck.wait()

    exporter = BusExporter("flooded")
    telemetry = Telemetry("flooded", exporter)
    exporter.start(send)
    for _ in range(10):
        with telemetry.calling("one"):
            pass

    assert metrics.spans_dropped.labels("flooded", "buffer")._value.get() == 7
    stuck.set()
    await exporter.stop()
