"""What the doctor finds in a database of one's own, and that its advice mends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import asyncpg
import pytest

from wayline.embedded import PostgresServer
from wayline.standalone.backup.database_dump import tables_moment
from wayline.standalone.doctor.database import examine_database
from wayline.standalone.doctor.finding import Finding
from wayline.standalone.settings import Settings
from wayline.standalone.setup.installation import Installation
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.setup.migrations import migrate_database
from wayline.standalone.upgrade.open_jobs import check_jobs
from wayline.standalone.upgrade.pending_migrations import check_database
from wayline.store import PostgresUnavailable
from wayline.testkit import Database
from wayline.testkit.databases import clone_with_tables, drop

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


@pytest.mark.parametrize(
    ("older_may_run", "state", "kind"),
    [(True, "note", "note"), (False, "problem", "blocked")],
    ids=["adds", "takes"],
)
async def test_a_newer_schema_is_a_note_unless_it_refuses_this_version(
    postgres_server: PostgresServer, tmp_path: Path, older_may_run: bool, state: str, kind: str
):
    database = await clone_with_tables(postgres_server)
    settings = Settings.model_validate({"postgres_dsn": database.dsn})
    installation = Installation(tmp_path / "data")
    installation.credentials.mkdir(parents=True)
    conn = await asyncpg.connect(database.dsn)
    await conn.execute(
        "INSERT INTO router.applied_migrations (version, file, checksum, older_may_run) VALUES ('9999', 'x', 'x', $1)",
        older_may_run,
    )
    await conn.close()

    findings = {one.about: one async for one in examine_database(settings, installation)}
    steps = [step async for step in check_database(find_servers(settings, installation))]
    await drop(database)

    assert findings["schema router"].state == state
    assert [step.kind for step in steps] == [kind]


async def test_commands_say_that_no_host_accepts_writes(database: Database, tmp_path: Path):
    more = "&" if "?" in database.dsn else "?"
    dsn = f"{database.dsn}{more}target_session_attrs=read-write&default_transaction_read_only=on"
    settings = Settings.model_validate({"postgres_dsn": dsn})
    installation = Installation(tmp_path / "data")
    installation.credentials.mkdir(parents=True)
    access = find_servers(settings, installation)
    no_bus: Any = None

    [found] = [one async for one in examine_database(settings, installation)]
    with pytest.raises(PostgresUnavailable, match="none of its hosts accepts writes"):
        _ = [step async for step in check_database(access)]
    with pytest.raises(PostgresUnavailable, match="none of its hosts accepts writes"):
        _ = [step async for step in check_jobs(no_bus, access)]
    with pytest.raises(PostgresUnavailable, match="none of its hosts accepts writes"):
        async with tables_moment(dsn, ["router"]):
            pass

    assert (found.state, found.text) == ("problem", "Postgres: none of its hosts accepts writes")
