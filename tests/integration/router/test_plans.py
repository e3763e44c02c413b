"""What a statement costs does not grow with the jobs there have been, also where nobody has analyzed the tables."""

import re
from decimal import Decimal
from importlib.resources import files

import asyncpg

from wayline.router.app import open_store
from wayline.store.queries import Queries
from wayline.testkit import Database

from .conftest import PASSWORD, ROLE, TENANT, Office, Offices

JOBS = 5_000
# A session plans a statement anew five times and then keeps one plan for all values.
UNTIL_KEPT = 8
SETTLED = """
INSERT INTO router.reservations (tenant, job_id, reserved_usd, agent, state, settled_usd, settled_at)
SELECT 'default', md5(n::text), 0.01, 'assistant', 'settled', 0.01, now() FROM generate_series(1, $1::int) AS n
"""
READ = """
SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::int FROM pg_stat_xact_user_tables WHERE relname = 'reservations'
"""
PLANNED = "SELECT custom_plans FROM pg_prepared_statements WHERE statement = $1"
PLANNED_MAX = 5
"""After so many plans for given values a session keeps one for all, where that is no dearer."""
LABELS_READ = """
SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::int FROM pg_stat_xact_user_tables
WHERE relname IN ('agent_labels', 'session_turns', 'reservations')
"""
BATCH = 8
WAITING_MAX = 1_000
FORGETTING = Queries.load(files("wayline.router.forgetting").joinpath("queries.sql"))
READ_MAX = 100
"""Reservations that a round of decisions about a batch may look at, whatever there is."""


async def test_no_decision_about_money_reads_every_reservation(offices: Offices, database: Database):
    office: Office = await offices()
    await office.put("march", "1000", window="month")
    admin = await asyncpg.connect(database.dsn)
    store = await open_store(database.as_role(ROLE, PASSWORD))
    sql, read = store.sql, 0
    try:
        async with store.system() as conn:
            for number in range(UNTIL_KEPT + 1):
                if number == UNTIL_KEPT:
                    await admin.execute(SETTLED, JOBS)
                jobs, cents = [f"j{number}-{n}" for n in range(BATCH)], [Decimal("0.01")] * BATCH
                none, read = [None] * BATCH, await conn.fetchval(READ)
                asked = jobs, ["assistant"] * BATCH, ["someone"] * BATCH, none
                accepted = [number] * BATCH, list(range(BATCH))
                queued = list(range(number * BATCH, (number + 1) * BATCH)), []
                turns = none, ["wait"] * BATCH, WAITING_MAX
                labels = none, [0.5] * BATCH, jobs, "production"
                await conn.fetch(sql.admit, TENANT, *asked, None, None, True, *turns, *accepted, *queued, *labels)
                await conn.fetch(sql.hold, TENANT, jobs, cents, none, [1] * BATCH, [False] * BATCH, None)
                await conn.fetch(sql.release, TENANT, jobs[0], Decimal("0.005"), 2)
                await conn.fetch(sql.wakeable, None, 10)
                await conn.fetch(sql.work_due)
                settled = await conn.fetch(sql.settle, TENANT, jobs, cents, [Decimal(0)] * BATCH, None)
                assert len(settled) == BATCH

            assert await conn.fetchval(READ) - read < READ_MAX
    finally:
        await admin.close()
        await store.close()


async def test_admissions_without_labels_keep_one_plan_and_read_no_labels(offices: Offices):
    office = await offices()
    sql = office.store.sql.admit
    nothing, wait = [None], ["wait"]
    async with office.store.system() as conn:
        for number in range(4 * UNTIL_KEPT):
            jobs = [f"j{number}"]
            asked = jobs, ["assistant"], ["someone"], nothing
            order = nothing, wait, WAITING_MAX, [number], [0], [number], []
            await conn.fetch(sql, TENANT, *asked, None, None, True, *order, nothing, [0.5], ["s1"], "production")

        assert await conn.fetchval(PLANNED, sql) == PLANNED_MAX
        assert await conn.fetchval(LABELS_READ) == 0


async def test_due_forgetting_is_found_by_its_index(offices: Offices):
    office = await offices()
    async with office.store.system() as conn:
        # The tables are empty: what is asked is whether the index can serve at all.
        await conn.execute("SET LOCAL enable_seqscan = off")
        rows = await conn.fetch(f"EXPLAIN {FORGETTING.claim_due}", 60.0, 10)
    plan = "\n".join(row[0] for row in rows)

    assert re.search(r"forgets_due .*\n *Index Cond: .*look_at <= now\(\)", plan), plan
