"""The functions of every service are read in its function files, and a database has those, however old it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import asyncpg
import pytest

from wayline.standalone.services import MEMBERS, Member
from wayline.store import migrate
from wayline.store.migration_files import FUNCTIONS
from wayline.testkit import Database

OWNERS = [member for member in MEMBERS if member.schema]
DEFINITIONS = """
SELECT pg_get_functiondef(pg_proc.oid) AS definition FROM pg_proc
WHERE pronamespace = to_regnamespace($1) ORDER BY 1
"""
DROP_ALL = """
SELECT format('DROP FUNCTION IF EXISTS %s CASCADE;', pg_proc.oid::regprocedure) AS statement FROM pg_proc
WHERE pronamespace = to_regnamespace($1)
"""


async def apply(database: Database, member: Member, directory: Path) -> list[str]:
    return await migrate(
        database.dsn,
        schema=str(member.schema),
        role=member.role,
        password="secret",
        directory=directory,
        vector=member.vector,
    )


async def functions(database: Database, member: Member, sql: str = DEFINITIONS) -> list[str]:
    conn = await asyncpg.connect(database.dsn)
    try:
        return [row[0] for row in await conn.fetch(sql, member.schema)]
    finally:
        await conn.close()


@pytest.mark.parametrize("member", OWNERS, ids=lambda member: member.name)
async def test_an_upgraded_database_and_a_fresh_one_have_the_same_functions(
    empty_database: Database, database: Database, tmp_path: Path, member: Member
):
    migrations_only = tmp_path / "migrations"
    shutil.copytree(member.migrations(), migrations_only)
    await apply(empty_database, member, migrations_only)

    await apply(empty_database, member, member.migrations())

    assert await functions(empty_database, member) == await functions(database, member)


@pytest.mark.parametrize("member", OWNERS, ids=lambda member: member.name)
async def test_the_function_files_make_every_function_of_the_schema(database: Database, member: Member):
    """So that nobody has to read a function out of the migrations."""
    before = await functions(database, member)
    conn = await asyncpg.connect(database.dsn)
    for statement in await functions(database, member, DROP_ALL):
        await conn.execute(statement)
    await conn.execute(f"DELETE FROM {member.schema}.applied_migrations WHERE version LIKE '{FUNCTIONS}/%'")
    await conn.close()

    await apply(database, member, member.migrations())

    assert await functions(database, member) == before
