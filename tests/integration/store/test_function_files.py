"""A schema's functions are those of its function files, whichever way the database came to this version."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from wayline.store import MigrationFailed, migrate
from wayline.testkit import Database

ROLE, PASSWORD = "sums_service", "secret"
TABLE = "-- migrate:up\nCREATE TABLE parts (usd numeric);\n-- migrate:down\nDROP TABLE parts;\n"
SUM = """
-- What all parts cost.
CREATE OR REPLACE FUNCTION total() RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT {} FROM parts
$$;
"""
FIRST, SECOND = SUM.format("sum(usd)"), SUM.format("coalesce(sum(usd), 0)")


@pytest.fixture
def service(tmp_path: Path) -> Path:
    """The directory of a service with one table and one function file."""
    (tmp_path / "migrations").mkdir()
    (tmp_path / "functions").mkdir()
    (tmp_path / "migrations" / "0001_parts.sql").write_text(TABLE)
    (tmp_path / "functions" / "totals.sql").write_text(FIRST)
    return tmp_path


async def apply(database: Database, service: Path) -> list[str]:
    return await migrate(database.dsn, schema="sums", role=ROLE, password=PASSWORD, directory=service / "migrations")


async def fetch(dsn: str, sql: str) -> list[tuple[object, ...]]:
    conn = await asyncpg.connect(dsn)
    try:
        return [tuple(row) for row in await conn.fetch(sql)]
    finally:
        await conn.close()


async def body_of(database: Database, name: str) -> str:
    [(text,)] = await fetch(database.dsn, f"SELECT pg_get_functiondef('sums.{name}'::regproc)")
    return str(text)


async def test_a_function_file_is_applied_after_the_migrations_and_once(database: Database, service: Path):
    assert await apply(database, service) == ["0001_parts.sql", "functions/totals.sql"]
    assert await apply(database, service) == []


async def test_a_changed_function_file_is_applied_once(database: Database, service: Path):
    await apply(database, service)
    (service / "functions" / "totals.sql").write_text(SECOND)

    assert await apply(database, service) == ["functions/totals.sql"]
    assert await apply(database, service) == []
    assert "coalesce" in await body_of(database, "total")


async def test_two_migrators_at_once_apply_a_changed_function_file_once(database: Database, service: Path):
    await apply(database, service)
    (service / "functions" / "totals.sql").write_text("SELECT pg_sleep(0.05);\n" + SECOND)

    applied = await asyncio.gather(*(apply(database, service) for _ in range(4)))

    assert sorted(applied) == [[], [], [], ["functions/totals.sql"]]


async def test_the_version_that_migrates_last_has_its_own_functions(database: Database, service: Path):
    await apply(database, service)
    (service / "functions" / "totals.sql").write_text(SECOND)
    await apply(database, service)
    (service / "functions" / "totals.sql").write_text(FIRST)

    assert await apply(database, service) == ["functions/totals.sql"]
    assert "coalesce" not in await body_of(database, "total")


async def test_a_removed_and_restored_function_file_is_applied_again(database: Database, service: Path):
    await apply(database, service)
    (service / "functions" / "totals.sql").rename(service / "functions" / "sums.sql")
    (service / "functions" / "sums.sql").write_text(SECOND)
    assert await apply(database, service) == ["functions/sums.sql"]
    (service / "functions" / "sums.sql").unlink()
    (service / "functions" / "totals.sql").write_text(FIRST)

    assert await apply(database, service) == ["functions/totals.sql"]
    assert "coalesce" not in await body_of(database, "total")


async def test_a_function_that_a_migration_made_is_replaced_by_its_file(database: Database, service: Path):
    (service / "migrations" / "0002_total.sql").write_text(
        "-- migrate:up\n" + FIRST.replace(" OR REPLACE", "") + "-- migrate:down\nDROP FUNCTION total;\n"
    )
    (service / "functions" / "totals.sql").rename(service / "kept.sql")
    await apply(database, service)
    (service / "functions" / "totals.sql").write_text(SECOND)

    assert await apply(database, service) == ["functions/totals.sql"]
    assert "coalesce" in await body_of(database, "total")


async def test_a_function_dropped_by_a_migration_is_recreated_from_its_file(database: Database, service: Path):
    await apply(database, service)
    (service / "migrations" / "0002_drop.sql").write_text("-- migrate:up\nDROP FUNCTION total;\n-- migrate:down\n")

    assert await apply(database, service) == ["0002_drop.sql", "functions/totals.sql"]
    assert "sum(usd)" in await body_of(database, "total")


async def test_a_running_session_goes_on_with_the_new_body(database: Database, service: Path):
    await apply(database, service)
    running = await asyncpg.connect(database.as_role(ROLE, PASSWORD), server_settings={"search_path": "sums"})
    statement = await running.prepare("SELECT total()")
    assert await statement.fetchval() is None

    (service / "functions" / "totals.sql").write_text(SECOND)
    await apply(database, service)

    assert await statement.fetchval() == 0
    await running.close()


async def test_a_changed_return_type_is_refused_and_changes_nothing(database: Database, service: Path):
    await apply(database, service)
    before = await body_of(database, "total")
    more = SECOND.replace("total()", "more()")
    (service / "functions" / "a_first.sql").write_text(more)
    (service / "functions" / "totals.sql").write_text(FIRST.replace("numeric", "text"))

    with pytest.raises(MigrationFailed, match=r"functions/totals.sql: cannot change return type"):
        await apply(database, service)

    assert await body_of(database, "total") == before
    # Files that call each other change together.
    assert await fetch(database.dsn, "SELECT to_regproc('sums.more')") == [(None,)]


async def test_a_mistake_in_a_function_file_is_named_with_its_line(database: Database, service: Path):
    (service / "functions" / "totals.sql").write_text(FIRST.replace("FROM parts", "FROM part"))

    with pytest.raises(MigrationFailed, match=r'functions/totals.sql:4: relation "part" does not exist'):
        await apply(database, service)


async def test_functions_of_a_file_are_closed_to_other_roles(database: Database, service: Path):
    await apply(database, service)

    grants = "SELECT proacl::text FROM pg_proc WHERE oid = 'sums.total'::regproc"
    assert await fetch(database.dsn, grants) == [("{postgres=X/postgres,sums_service=X/postgres}",)]
