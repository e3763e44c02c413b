"""What the doctor finds in a database of one's own, and that its advice mends it."""

from __future__ import annotations

from pathlib import Path

import asyncpg

from wayline.standalone.doctor.database import examine_database
from wayline.standalone.doctor.finding import Finding
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.setup.migrations import migrate_database
from wayline.testkit import Database

RESTORED = "ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) NOT LEAKPROOF"
"""What a dump and a restore, or pg_upgrade, do to a database: they know nothing of the declaration."""


async def test_a_restored_databases_keyword_search_is_found_and_mended(database: Database, tmp_path: Path):
    settings = Settings.model_validate({"postgres_dsn": database.dsn})
    installation = Installation(tmp_path / "data")
    installation.credentials.mkdir(parents=True)
    access = find_servers(settings, installation)

    async def migrate() -> None:
        async for _ in migrate_database(access):
            pass

    async def keyword_search() -> Finding:
        [found] = [one async for one in examine_database(settings, installation) if one.about == "keyword search"]
        return found

    await migrate()
    fresh = await keyword_search()
    conn = await asyncpg.connect(database.dsn)
    await conn.execute(RESTORED)
    await conn.close()
    restored = await keyword_search()
    await migrate()
    mended = await keyword_search()

    assert (fresh.state, restored.state, mended.state) == ("ok", "problem", "ok")
    assert "wayline migrate" in restored.todo
