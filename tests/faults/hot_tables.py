"""Changes of the tables that jobs write most, and how long a service waits for a lock meanwhile."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from wayline.standalone.services import MEMBERS
from wayline.testkit import until

from .platform import FaultPlatform

HOT = {"router": "reservations", "tracing": "jobs", "tools": "calls"}
"""By schema the table that jobs write most."""
WATCH_WITHIN_S = 800.0
WAITED = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)), 0)
FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
WHERE NOT l.granted AND a.usename LIKE 'wayline\\_%' AND a.datname = current_database()
"""


def with_changes_of_a_hot_table(schema: str, workplace: Path) -> Path:
    """Return the migrations of a schema with two more: a column and an index of the table that its jobs write most."""
    [member] = [one for one in MEMBERS if one.schema == schema]
    shutil.copytree(member.migrations().parent / "migrations", workplace / schema / "migrations")
    if (functions := member.migrations().parent / "functions").exists():
        shutil.copytree(functions, workplace / schema / "functions")
    table, folder = HOT[schema], workplace / schema / "migrations"
    (folder / "9998_more.sql").write_text(
        f"-- migrate:up\nALTER TABLE {table} ADD COLUMN more text;\n-- migrate:down\n"
    )
    (folder / "9999_index.sql").write_text(
        f"-- migrate:up transaction:false\nCREATE INDEX CONCURRENTLY by_more ON {table} (more);\n-- migrate:down\n"
    )
    return folder


def role_of_schema(schema: str) -> str:
    [member] = [one for one in MEMBERS if one.schema == schema]
    return str(member.role)


async def longest_wait(platform: FaultPlatform, over: asyncio.Event) -> float:
    """Return for how many seconds a service has waited for a lock at most, looking every so often."""
    longest = 0.0

    async with platform.superuser() as conn:

        async def looked() -> bool:
            nonlocal longest
            longest = max(longest, float(await conn.fetchval(WAITED)))
            return over.is_set()

        await until(looked, within=WATCH_WITHIN_S, why="the migration is over")
    return longest
