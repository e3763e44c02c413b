"""What a batch costs does not grow with the jobs there have been, and what it hands over is what Postgres expects."""

from typing import NamedTuple

import asyncpg
import pytest

from wayline.contracts.traces import GetTrace, ListJobs
from wayline.tracing.adapters.tables import PostgresTables
from wayline.tracing.handlers.answers import ViewHandlers
from wayline.tracing.rows import JobRow, LedgerRow, SpanRow, StepRow
from wayline.tracing.views.job_search import page_statements

from .conftest import TracingPlatform

JOBS = 5_000
# A session plans a statement anew five times and then keeps one plan for all values.
UNTIL_KEPT = 8
ENDED = """
INSERT INTO tracing.jobs (
    tenant, job_id, seq, trace_id, status, agent, steps, usage, tokens, partial, citations, created_at
)
SELECT 'acme', 'j' || n, 9, md5(n::text), 'completed', 'assistant', 2, '{}', 10, false, '[]', now()
FROM generate_series(1, $1::int) AS n
"""
TENANTS, SPENT_EACH = 50, 100
SPENT = """
INSERT INTO tracing.ledger (
    tenant, job_id, attempt_id, seq, step, kind, model, agent, input_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, output_tokens, reasoning_tokens, cost_usd, open, settled, at
)
SELECT
    't' || n % $2::int, md5((n / 3)::text), md5(n::text), 1, 1, 'model', 'm', 'a', 1, 0, 0, 0, 1, 0, 0.001, false, true,
    now() - make_interval(secs => n)
FROM generate_series(1, $1::int) AS n
"""
LEDGER_READ = """
SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::int
FROM pg_stat_user_tables WHERE relid = 'tracing.ledger'::regclass
"""
JOBS_READ = """
SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::int
FROM pg_stat_user_tables WHERE relid = 'tracing.jobs'::regclass
"""
READ = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'jobs'"
SPANS, OF_A_TRACE = 20_000, 100
SPANS_OF_TODAY = """
INSERT INTO tracing.spans (
    trace_id, span_id, tenant, service, name, kind, start, duration_ms, status, attributes, links, events, seq
)
SELECT
    md5((n / $2::int)::text), n::text, 'acme', 'executor', 'call', 'client', now(), 5, 'ok', '{}', '[]', '[]', 0
FROM generate_series(0, $1::int - 1) AS n
"""
ENTRIES_READ = """
SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes WHERE schemaname = 'tracing' AND relname LIKE 'spans%'
"""


async def test_progress_and_tenant_lookups_use_an_index(platform: TracingPlatform):
    tables = PostgresTables(platform.tables, spans_days=7)
    admin = await asyncpg.connect(platform.database.dsn)
    keys = [("acme", "j1"), ("acme", "j2"), ("acme", "unknown")]

    async def scanned() -> int:
        async with platform.tables.system() as conn:
            await conn.execute("SELECT pg_stat_force_next_flush()")
        return await admin.fetchval(READ)

    # Both of the pool's connections keep their plans.
    for _ in range(2 * UNTIL_KEPT):
        assert await tables.progress(keys) == {}
        assert await tables.tenants(["c4ca4238a0b923820dcc509a6f75849b", "?"]) == {}
    await admin.execute(ENDED, JOBS)
    before = await scanned()

    assert await tables.progress(keys) == {("acme", "j1"): 9, ("acme", "j2"): 9}
    assert await tables.tenants(["c4ca4238a0b923820dcc509a6f75849b", "?"]) == {
        "c4ca4238a0b923820dcc509a6f75849b": "acme"
    }
    assert await scanned() == before
    await admin.close()


async def test_a_trace_is_read_without_its_tenants_other_spans(platform: TracingPlatform):
    tables = PostgresTables(platform.tables, spans_days=7)
    await tables.keep_spans()
    admin = await asyncpg.connect(platform.database.dsn)
    # As in a day that has just begun: nothing is known about the new partition, so every index of it looks cheap.
    await admin.execute(SPANS_OF_TODAY, SPANS, OF_A_TRACE)

    async def read() -> int:
        async with platform.tables.system() as conn:
            await conn.execute("SELECT pg_stat_force_next_flush()")
        return await admin.fetchval(ENTRIES_READ)

    before = await read()
    trace = await ViewHandlers(platform.tables).get_trace(
        GetTrace(tenant="acme", trace_id="c4ca4238a0b923820dcc509a6f75849b")
    )

    assert trace.totals.spans == OF_A_TRACE
    assert await read() - before <= 2 * OF_A_TRACE
    await admin.close()


@pytest.mark.parametrize("filtered", ["session_id", "user_id"])
async def test_the_jobs_of_one_session_or_user_are_read_alone(platform: TracingPlatform, filtered: str):
    admin = await asyncpg.connect(platform.database.dsn)
    [asked] = page_statements(ListJobs(tenant="acme", limit=10, **{filtered: "x7"}), None, shown=100)

    async def read() -> int:
        async with platform.tables.system() as conn:
            await conn.execute("SELECT pg_stat_force_next_flush()")
        return await admin.fetchval(JOBS_READ)

    await admin.execute(ENDED, JOBS)
    await admin.execute(f"UPDATE tracing.jobs SET {filtered} = 'x' || substr(job_id, 2)::int % 500")
    await admin.execute("ANALYZE tracing.jobs")
    for _ in range(2 * UNTIL_KEPT):
        assert len(await platform.tables.fetch("acme", asked.sql, *asked.arguments)) == JOBS / 500
    before = await read()

    await platform.tables.fetch("acme", asked.sql, *asked.arguments)

    assert await read() - before <= 2 * JOBS / 500, "each is found, and then read"
    await admin.close()


async def test_the_costs_of_a_tenant_are_found_without_reading_the_others(platform: TracingPlatform):
    admin = await asyncpg.connect(platform.database.dsn)
    asked = ("t7", ["model"], None, 2_000, "UTC", *[None] * 10)

    async def read() -> int:
        async with platform.tables.system() as conn:
            await conn.execute("SELECT pg_stat_force_next_flush()")
        return await admin.fetchval(LEDGER_READ)

    for _ in range(2 * UNTIL_KEPT):
        assert await platform.tables.fetch("t7", platform.tables.sql.costs, *asked) == []
    await admin.execute(SPENT, TENANTS * SPENT_EACH, TENANTS)
    before = await read()

    total, group = await platform.tables.fetch("t7", platform.tables.sql.costs, *asked)

    assert (total["calls"], group["calls"]) == (SPENT_EACH, SPENT_EACH)
    assert await read() - before <= SPENT_EACH
    await admin.close()


@pytest.mark.parametrize(
    ("row", "kind"), [(JobRow, "job_row_7"), (StepRow, "step_row"), (LedgerRow, "ledger_row_2"), (SpanRow, "span_row")]
)
async def test_a_row_has_the_fields_of_its_type_in_their_order(
    platform: TracingPlatform, row: type[NamedTuple], kind: str
):
    columns = await platform.rows(
        f"SELECT attname FROM pg_attribute WHERE attrelid = 'tracing.{kind}'::regclass ORDER BY attnum"
    )

    assert tuple(column["attname"] for column in columns) == row._fields
