"""What a tenant stores on the bus, counted by the router against its share."""

from __future__ import annotations

import asyncio

import asyncpg

from wayline.chassis import Bus
from wayline.router.tenants.shares import ShareLimits, Shares
from wayline.testkit import Database, until

from .conftest import TENANT, Office


async def test_bytes_that_are_being_written_count(office: Office, bus: Bus, database: Database):
    shares = Shares(bus, office.store, ShareLimits(stored_bytes=1_000, unfinished=10))
    await bus.js.publish("events.default.j1", b"x" * 2_000)
    bus.stored.note(TENANT, 2_000)
    conn = await asyncpg.connect(database.dsn)

    async def waits() -> bool:
        return await conn.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == 1

    async with conn.transaction():
        await conn.execute("LOCK TABLE router.stored_bytes IN SHARE MODE")
        writing = asyncio.create_task(shares.write())
        await until(waits, why="the router waits to write its sums")
        meanwhile = await shares.why_full(TENANT)
    await writing
    await conn.close()

    assert meanwhile is not None
    assert await shares.why_full(TENANT) is not None
