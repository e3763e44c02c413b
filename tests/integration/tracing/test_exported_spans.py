"""Leaf spans: what services export lands in its job's tree, whatever happened to the parents."""

from datetime import timedelta

import pytest
from prometheus_client import REGISTRY

from wayline.contracts import ids
from wayline.contracts.errors import Refused
from wayline.contracts.traces import GetTrace, Trace
from wayline.store import rls_gaps
from wayline.telemetry import JobTrace
from wayline.tracing.adapters.tables import PostgresTables

from .conftest import QUICK, ExportedSpans, Log, Start, TracingPlatform, flat, outline


def at_tool(tenant: str = "acme", job_id: str = "j1") -> JobTrace:
    return JobTrace.of(tenant, job_id, ids.tool_span(tenant, job_id, 1, "1"))


async def test_a_leaf_hangs_under_the_span_it_was_made_under(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    registry = ExportedSpans("tool_registry")
    with registry.handling(at_tool()), registry.telemetry.calling("tools/call search"):
        pass
    await platform.send_spans(registry.finished)
    await platform.send_spans(registry.finished)
    await platform.wait_until_read()

    trace = await platform.trace("j1")

    assert outline(trace.root)[3:6] == [
        "    execute_tool search",
        "      process tools.call.{tenant}",
        "        tools/call search",
    ]
    assert trace.totals.spans == 8
    assert {span.service for span in flat(trace.root)} == {"executor", "tool-registry"}


async def test_a_trace_says_what_has_not_arrived_yet(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()
    before = await platform.trace("j1")
    registry = ExportedSpans("tool_registry")
    with registry.handling(at_tool()), registry.telemetry.calling("tools/call search"):
        pass
    call, handled = registry.finished
    await platform.send_spans([call])
    await platform.wait_until_read()
    between = await platform.trace("j1")
    await platform.send_spans([handled])
    await platform.wait_until_read()
    after = await platform.trace("j1")

    assert [trace.totals.missing for trace in (before, between, after)] == [1, 1, 0]


async def test_a_leaf_that_came_before_its_log_is_its_jobs_too(platform: TracingPlatform, start: Start):
    await start()
    registry = ExportedSpans()
    with registry.handling(at_tool()):
        pass
    await platform.send_spans(registry.finished)
    await platform.wait_until_read()
    await Log(platform.bus).whole()
    await platform.wait_until_read()

    assert "      process tools.call.{tenant}" in outline((await platform.trace("j1")).root)


async def test_a_span_whose_parent_died_hangs_at_its_anchor(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    registry = ExportedSpans()
    with registry.handling(at_tool()):
        with registry.telemetry.calling("tools/call search"):
            pass
        # Killed here: the handling span, its parent, is never exported.
        await platform.send_spans(registry.finished)
    await platform.wait_until_read()

    trace = await platform.trace("j1")

    assert outline(trace.root)[3:5] == ["    execute_tool search", "      tools/call search"]
    (orphan,) = [span for span in flat(trace.root) if span.name == "tools/call search"]
    assert orphan.parent_span_id == ids.tool_span("acme", "j1", 1, "1")


async def test_a_span_with_neither_parent_nor_anchor_hangs_at_the_root(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    nowhere = JobTrace(ids.trace_id("acme", "j1"), "ab" * 8)
    registry = ExportedSpans()
    with registry.handling(nowhere):
        pass
    await platform.send_spans(registry.finished)
    await platform.wait_until_read()

    trace = await platform.trace("j1")

    assert [span.name for span in trace.root.children] == ["step 1", "step 2", "process tools.call.{tenant}"]


async def test_a_trace_without_job_belongs_to_its_named_tenant_only(platform: TracingPlatform, start: Start):
    await start()
    retrieval = ExportedSpans("retrieval")
    with retrieval.telemetry.span("index a document", attributes={"wayline.tenant": "acme"}):
        pass
    with retrieval.telemetry.span("nobody's"):
        pass
    await platform.send_spans(retrieval.finished)
    await platform.wait_until_read()
    named, nobodys = (f"{span.context.trace_id:032x}" for span in retrieval.finished if span.context)

    trace = await platform.bus.ask(GetTrace(tenant="acme", trace_id=named), Trace)
    assert (trace.job_id, trace.root.name) == (None, "index a document")
    for tenant, trace_id in (("globex", named), ("acme", nobodys)):
        with pytest.raises(Refused) as refused:
            await platform.bus.ask(GetTrace(tenant=tenant, trace_id=trace_id), Trace)
        assert refused.value.code == "not_found"


async def test_invalid_otlp_is_dead_lettered_and_its_neighbours_stored(platform: TracingPlatform, start: Start):
    await Log(platform.bus).whole()
    registry = ExportedSpans()
    with registry.handling(at_tool()):
        pass
    await platform.bus.store("telemetry.traces", b"\xff\xffnot protobuf", {})
    await platform.send_spans(registry.finished)
    await start(QUICK.model_copy(update={"linger_ms": 200, "idle_linger_ms": 200}))
    await platform.wait_until_read()

    assert (await platform.trace("j1")).totals.spans == 7
    dead = await platform.bus.js.get_msg("DEAD", 1)
    assert (dead.headers or {})["Wayline-Dead-Code"] == "invalid_spans"


@pytest.mark.slow
async def test_a_trace_of_five_thousand_spans_is_answered_whole(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    registry = ExportedSpans()
    for _ in range(2_500):
        with registry.handling(at_tool()), registry.telemetry.calling("tools/call search"):
            pass
    for begin in range(0, 5_000, 500):
        await platform.send_spans(registry.finished[begin : begin + 500])
    await platform.wait_until_read()

    trace = await platform.trace("j1")

    assert trace.totals.spans == 5_006
    assert len(flat(trace.root)) == 5_006


async def test_old_days_are_dropped_and_later_spans_of_them_are_counted(platform: TracingPlatform, start: Start):
    await start()
    log = Log(platform.bus)
    log.at -= timedelta(days=3)
    await log.whole()
    await platform.wait_until_read()
    assert (await platform.trace("j1")).totals.spans == 6

    await PostgresTables(platform.tables, spans_days=1).keep_spans()

    assert await platform.rows("SELECT 1 FROM spans WHERE start < now() - interval '1 day'") == []
    trace = await platform.trace("j1")
    assert outline(trace.root) == ["invoke_agent assistant"]
    assert (trace.totals.tokens, trace.root.status) == (30, "ok")

    def dropped() -> float:
        labels = {"service": "tracing", "where": "too old"}
        return REGISTRY.get_sample_value("wayline_spans_dropped_total", labels) or 0.0

    before = dropped()
    late = Log(platform.bus, job_id="j2")
    late.at -= timedelta(days=9)
    await late.whole()
    await platform.wait_until_read()
    assert dropped() == before + 6
    assert len(await platform.rows("SELECT 1 FROM steps WHERE job_id = 'j2'")) == 2


async def test_a_window_that_another_replica_moved_on_stops_nothing(platform: TracingPlatform, start: Start):
    await start()
    # The service still believes in seven days.
    await PostgresTables(platform.tables, spans_days=1).keep_spans()
    log = Log(platform.bus)
    log.at -= timedelta(days=4)
    await log.whole()
    await platform.wait_until_read()

    assert await platform.rows("SELECT status FROM jobs") == [{"status": "completed"}]


async def test_rows_past_their_time_are_deleted(platform: TracingPlatform, start: Start):
    await start()
    old, new = Log(platform.bus, job_id="old"), Log(platform.bus, job_id="new")
    old.at -= timedelta(days=401)
    await old.whole()
    await new.whole()
    await platform.wait_until_read()

    await PostgresTables(platform.tables, spans_days=7).forget(days=400)

    for table in ("jobs", "steps", "ledger"):
        assert {row["job_id"] for row in await platform.rows(f"SELECT job_id FROM {table}")} == {"new"}


async def test_every_table_and_partition_is_guarded_by_tenant(platform: TracingPlatform, start: Start):
    await start()
    import asyncpg

    conn = await asyncpg.connect(platform.database.dsn)
    assert await rls_gaps(conn) == []
    partitions = await conn.fetchval("SELECT count(*) FROM pg_inherits WHERE inhparent = 'tracing.spans'::regclass")
    await conn.close()
    assert partitions == QUICK.spans_days + 3


async def test_span_partitions_are_never_vacuumed_and_only_keys_analyzed(platform: TracingPlatform, start: Start):
    await start()
    await PostgresTables(platform.tables, spans_days=20).keep_spans()
    import asyncpg

    conn = await asyncpg.connect(platform.database.dsn)
    options = await conn.fetch(
        "SELECT reloptions FROM pg_class JOIN pg_inherits ON inhrelid = oid WHERE inhparent = 'tracing.spans'::regclass"
    )
    analyzed = await conn.fetch(
        "SELECT attname, count(*) AS tables FROM pg_attribute JOIN pg_inherits ON inhrelid = attrelid"
        " WHERE inhparent = 'tracing.spans'::regclass AND attnum > 0 AND attstattarget IS DISTINCT FROM 0 GROUP BY 1"
    )
    await conn.close()
    assert len(options) == 20 + 3
    never = {"autovacuum_vacuum_insert_threshold=-1", "autovacuum_vacuum_threshold=2147483647"}
    assert all(never <= set(row["reloptions"]) for row in options)
    assert {row["attname"]: row["tables"] for row in analyzed} == dict.fromkeys(("trace_id", "span_id", "start"), 23)


async def test_a_service_keeps_its_own_name_despite_otel_service_name(
    platform: TracingPlatform, start: Start, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "agents")
    await start()
    await Log(platform.bus).whole()
    registry = ExportedSpans("tool_registry")
    with registry.handling(at_tool()):
        pass
    await platform.send_spans(registry.finished)
    await platform.wait_until_read()

    trace = await platform.trace("j1")

    assert [span.service for span in flat(trace.root) if span.name.startswith("process")] == ["tool-registry"]
