"""Whose memories are to be summarised: noted with the end of a job, and no more once its user is forgotten."""

from __future__ import annotations

from wayline.router.forgetting.erasure_scope import ErasureScope
from wayline.router.forgetting.own_rows import OwnRows
from wayline.router.sessions.extraction_table import ExtractionTable

from .conftest import TENANT, Office, Offices


async def due(office: Office) -> list[str]:
    rows = await ExtractionTable(office.store).summaries_due(quiet_s=0, every_s=3_600)
    return [row["user_id"] for row in rows]


async def test_a_job_that_is_settled_again_names_no_forgotten_user(offices: Offices):
    office = await offices()
    table, rows = ExtractionTable(office.store), OwnRows(office.store)
    await office.admit("j1", user="ann")
    await office.settle("j1", "0.01")
    await table.want_summary(TENANT, "j1", "ann", "assistant")
    noted = await due(office)

    await rows.erase(ErasureScope(tenant=TENANT, user_id="ann"))
    await table.want_summary(TENANT, "j1", "ann", "assistant")

    assert (noted, await due(office)) == (["ann"], [])


WANTED = """
INSERT INTO memory_summaries (tenant, user_id, agent, wanted_at, begun_at)
VALUES ('default', 'ann', 'assistant', now() - interval '1 min', now() - $1 * interval '1 min')
"""
READ = """
SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::int FROM pg_stat_xact_user_tables
WHERE relname = 'memory_summaries'
"""


async def test_a_summary_of_later_is_looked_at_once_until_then(offices: Offices):
    office = await offices()
    await office.store.execute(TENANT, WANTED, 10.0)
    sql = office.store.sql.summaries_due
    async with office.store.system() as conn:
        assert await conn.fetch(sql, 0.0, 3_600.0, 10) == []
        read = await conn.fetchval(READ)

        assert await conn.fetch(sql, 0.0, 3_600.0, 10) == []

        assert await conn.fetchval(READ) == read


async def test_a_summary_is_due_so_long_after_the_last_one(offices: Offices):
    office = await offices()
    await office.store.execute(TENANT, WANTED, 61.0)

    assert await due(office) == ["ann"]


async def test_no_summary_is_due_while_a_job_waits_for_its_budget(offices: Offices):
    office = await offices()
    await office.put("march", "0.01", window="month")
    await office.admit("j1", user="ann")
    await office.extend("j1", "0.05")
    await office.store.execute(TENANT, WANTED, 61.0)

    assert await due(office) == []
