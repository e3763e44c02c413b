"""Deciding who runs reads few rows, however many jobs of a tenant wait; and nobody waits for another's full limit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest_asyncio

from wayline.contracts.run_controls import AskPermit
from wayline.router.app import open_store
from wayline.router.permits.permit_table import PermitTable
from wayline.store import Store
from wayline.testkit import Database

from .conftest import PASSWORD, ROLE, TENANT

RUNNING, WAITING, PAUSED = 1_000, 10_000, 200
# A session plans a statement anew five times and then keeps one plan for all values.
UNTIL_KEPT = 8
LIMITS = """
INSERT INTO router.running_limits (tenant, whose, name, max_running, when_full)
VALUES
    ('default', 'agent', 'busy', $1, 'wait'), ('default', 'user', '*', 5, 'refuse'), ('default', 'key', '*', 5, 'wait')
"""
JOBS = """
INSERT INTO router.run_permits (tenant, job_id, state, at, lane, agent, user_id, key_id)
SELECT 'default', $1 || n, $1, 7, 'interactive', $2, $2 || n, $2 || n FROM generate_series(1, $3::int) AS n
"""
PAUSES = """
INSERT INTO router.pauses (kind, tenant, name, reason, paused_by, at_once)
SELECT 'agent', 'default', name, '', 'ops', false
FROM unnest(ARRAY['clerk'] || ARRAY(SELECT 'a' || n FROM generate_series(2, $1::int) AS n)) AS name
"""
PAUSES_READ = """
SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::int FROM pg_stat_xact_user_tables WHERE relname = 'pauses'
"""
READ = """
SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::int FROM pg_stat_xact_user_tables WHERE relname = 'run_permits'
"""
FEW = 20
"""Rows that one question may read."""


@pytest_asyncio.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = await open_store(database.as_role(ROLE, PASSWORD))
    yield store
    await store.close()


@pytest_asyncio.fixture
async def admin(database: Database) -> AsyncIterator[asyncpg.Connection]:
    admin = await asyncpg.connect(database.dsn)
    yield admin
    await admin.close()


async def test_a_job_is_counted_without_reading_those_that_wait(store: Store, admin: asyncpg.Connection):
    sql = PermitTable(store).sql
    await admin.execute(LIMITS, RUNNING)
    quiet, read = list[Any](), 0
    async with store.system() as conn:
        for number in range(UNTIL_KEPT + 1):
            if number == UNTIL_KEPT:
                await admin.execute(JOBS, "running", "busy", RUNNING)
                await admin.execute(JOBS, "waiting", "busy", WAITING)
            read = await conn.fetchval(READ)
            quiet = await conn.fetch(sql.limits_of_job, TENANT, "j", "quiet", "ann", "k1")
        assert await conn.fetchval(READ) - read <= FEW

        busy = await conn.fetch(sql.limits_of_job, TENANT, "j", "busy", None, None)
        assert await conn.fetchval(READ) - read <= RUNNING + FEW

    assert [(row["whose"], row["running"], row["before"]) for row in quiet] == [("key", 0, False), ("user", 0, False)]
    assert [(row["whose"], row["running"], row["before"]) for row in busy] == [("agent", RUNNING, True)]


async def test_listed_limits_read_each_job_once_for_its_agent(store: Store, admin: asyncpg.Connection):
    sql = PermitTable(store).sql
    await admin.execute(LIMITS, RUNNING)
    await admin.execute(
        "INSERT INTO router.running_limits SELECT 'default', 'user', 'u' || n, 5, 'wait' FROM generate_series(1, 100) n"
    )
    await admin.execute(JOBS, "waiting", "busy", RUNNING)
    async with store.system() as conn:
        read = await conn.fetchval(READ)
        rows = await conn.fetch(sql.list_running_limits, TENANT)
        assert await conn.fetchval(READ) - read <= RUNNING + FEW

    assert [(row["running"], row["waiting"]) for row in rows if row["name"] == "busy"] == [(0, RUNNING)]
    assert {(row["running"], row["waiting"]) for row in rows if row["name"] == "*"} == {(None, None)}


async def test_jobs_behind_many_of_a_full_limit_get_their_place(store: Store, admin: asyncpg.Connection):
    permits = PermitTable(store)
    await admin.execute(LIMITS, 2)
    await admin.execute(JOBS, "waiting", "busy", 1_200)
    await admin.execute(JOBS.replace("$1 || n", "'late' || n"), "waiting", "idle", 3)

    given = await permits.give_places(TENANT)
    again = await permits.give_places(TENANT)

    assert sorted(job.job_id for job in given) == ["late1", "late2", "late3", "waiting1", "waiting2"]
    assert again == []


async def test_a_user_gets_as_many_places_as_are_free(store: Store, admin: asyncpg.Connection):
    permits = PermitTable(store)
    await admin.execute(LIMITS, 2)
    await admin.execute(JOBS, "running", "idle", 3)
    await admin.execute(JOBS, "waiting", "idle", 9)
    await admin.execute("UPDATE router.run_permits SET user_id = 'ann'")

    assert len(await permits.give_places(TENANT)) == 2


async def test_a_job_that_ran_before_its_limit_keeps_running(store: Store, admin: asyncpg.Connection):
    permits = PermitTable(store)
    await admin.execute(LIMITS, 1)
    about: dict[str, Any] = {"tenant": TENANT, "lane": "interactive", "agent": "busy"}
    assert (await permits.ask(AskPermit(job_id="new", at=1, **about))).granted

    taken_over = await permits.ask(AskPermit(job_id="old", at=1, begun=True, **about))
    next_one = await permits.ask(AskPermit(job_id="next", at=1, **about))

    assert taken_over.granted and not next_one.granted
    assert next_one.words.startswith("2 of the 1 jobs run")


async def test_jobs_of_paused_agents_look_for_their_pause_together(store: Store, admin: asyncpg.Connection):
    sql = PermitTable(store).sql
    over, read = list[Any](), 0
    async with store.system() as conn:
        for number in range(UNTIL_KEPT + 1):
            if number == UNTIL_KEPT:
                await admin.execute(PAUSES, PAUSED)
                await admin.execute(JOBS, "paused", "clerk", WAITING)
                await admin.execute(JOBS.replace("$1 || n", "'over' || n"), "paused", "idle", 3)
            read = await conn.fetchval(PAUSES_READ)
            over = await conn.fetch(sql.over_pauses, 10)
        assert await conn.fetchval(PAUSES_READ) - read <= 3 * PAUSED + FEW

    assert [row["job_id"] for row in over] == ["over1", "over2", "over3"]
