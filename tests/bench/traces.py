"""What spans cost tracing: to store them, again and again too, and to show a trace of 100 among all of them.

python -m tests.bench.traces [--spans N] [--write docs/performance.md]

CPU is that of the process that decodes and stores, and that of its connections to Postgres: others on the machine
change it little. Batches are those that services export.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from wayline.chassis.loop_pauses import shorten_pauses
from wayline.contracts.traces import GetTrace
from wayline.embedded import PostgresServer
from wayline.store import Store, migrate
from wayline.telemetry import names
from wayline.tracing import app
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.consume.exported_spans import Export, ExportedSpans, read_spans
from wayline.tracing.consume.trace_tenants import TraceTenants
from wayline.tracing.handlers.answers import ViewHandlers

from . import page
from .job_search import cpu_s
from .speed.load import percentile

SPANS, OF_A_TRACE, BATCH, TRACES_READ = 1_000_000, 100, 1_000, 100
AGAIN = 20
"""Batches that come twice."""
RATE_MIN, WAIT_MAX_MS = 5_000, 100


def batch(number: int, now_ns: int) -> bytes:
    """Return an exported batch: traces of 100 spans each, of one tenant."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    for key, value in ((names.SERVICE, "executor"), (names.TENANT, "acme")):
        resource.resource.attributes.add(key=key).value.string_value = value
    spans = resource.scope_spans.add().spans
    for place in range(BATCH):
        of = number * BATCH + place
        span = spans.add(name=f"call {place % 17}", kind=3)
        span.trace_id = (of // OF_A_TRACE + 1).to_bytes(16, "big")
        span.span_id = (of + 1).to_bytes(8, "big")
        if of % OF_A_TRACE:
            span.parent_span_id = (of - of % OF_A_TRACE + 1).to_bytes(8, "big")
        span.start_time_unix_nano = now_ns + place * 1_000_000
        span.end_time_unix_nano = span.start_time_unix_nano + 5_000_000
        for key in ("gen_ai.request.model", "messaging.destination", "server.address", "wayline.step"):
            span.attributes.add(key=key).value.string_value = f"value {of % 97}"
    return request.SerializeToString()


@asynccontextmanager
async def opened() -> AsyncIterator[Store]:
    """Start a server, and yield tracing's store."""
    with tempfile.TemporaryDirectory(prefix="wayline-bench-") as directory:
        os.chmod(directory, 0o711)
        server = PostgresServer(Path(directory) / "postgres", settings={"fsync": "off"})
        await server.start()
        try:
            await migrate(server.dsn(), schema="tracing", role="bench", password="bench", directory=app.migrations())
            store = await app.open_store(server.dsn(user="bench", password="bench"), pool_size=1, wait_s=5)
            try:
                yield store
            finally:
                await store.close()
        finally:
            await server.stop()


async def report(spans: int) -> str:
    """Store so many spans, some of them twice, read traces of them, and return the table."""
    load = os.getloadavg()[0]
    shorten_pauses()
    async with opened() as store:
        tables = PostgresTables(store, spans_days=7)
        await tables.keep_spans()
        exported = ExportedSpans(tables, TraceTenants(tables))
        async with store.system() as conn:
            backend = await conn.fetchval("SELECT pg_backend_pid()")
        now_ns = int(datetime.now(UTC).timestamp()) * 10**9
        own_s, theirs_s, began = 0.0, cpu_s(backend), time.perf_counter()
        for number in [*range(spans // BATCH), *range(AGAIN)]:
            body = batch(number, now_ns)
            before = time.process_time()
            await exported.store([Export(read_spans(body), body)])
            own_s += time.process_time() - before
        stored, seconds = spans + AGAIN * BATCH, time.perf_counter() - began
        theirs_s = cpu_s(backend) - theirs_s
        async with store.system() as conn:
            there = await conn.fetchval("SELECT count(*) FROM spans")
        assert there == spans, (there, spans)
        views, waits = ViewHandlers(store), []
        before_s, read_s = cpu_s(backend), time.process_time()
        for number in range(TRACES_READ):
            trace_id = f"{number * (spans // OF_A_TRACE) // TRACES_READ + 1:032x}"
            started = time.perf_counter()
            trace = await views.get_trace(GetTrace(tenant="acme", trace_id=trace_id))
            waits.append((time.perf_counter() - started) * 1_000)
            assert trace.totals.spans == OF_A_TRACE
        read_ms = (time.process_time() - read_s + cpu_s(backend) - before_s) / TRACES_READ * 1_000
    rows = [
        ["spans a second that one process's CPU is enough for", f"{stored / own_s:,.0f}", f"≥ {RATE_MIN:,}"],
        ["the same of Postgres, one connection", f"{stored / theirs_s:,.0f}", f"≥ {RATE_MIN:,}"],
        ["spans a second that were stored in this run", f"{stored / seconds:,.0f}", ""],
        [f"a trace of {OF_A_TRACE} among them, CPU of both, ms", f"{read_ms:.1f}", ""],
        ["the same, ms p50", f"{median(waits):.1f}", ""],
        ["the same, ms p99", f"{percentile(waits, 0.99):.1f}", f"≤ {WAIT_MAX_MS}"],
    ]
    table = page.table([f"{spans:,} spans, {AGAIN * BATCH:,} of them twice", "here", "aim"], rows)
    return f"{page.machine(load)}\n\n{table}"


def main() -> None:
    parser = argparse.ArgumentParser(description="What spans cost tracing.")
    parser.add_argument("--spans", type=int, default=SPANS)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    given = parser.parse_args()
    text = asyncio.run(report(given.spans))
    if given.write:
        page.write(given.write, "traces", text)
    print(text)


if __name__ == "__main__":
    main()
